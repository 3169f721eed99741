/* SPDX-License-Identifier: MIT */
#include <cassert>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace calc {

enum class Kind { Number, Operator, Open, Close };

struct Token {
    Kind kind;
    char symbol;
    long value;
};

class Lexer {
public:
    explicit Lexer(std::string text) : text_(std::move(text)) {}

    std::vector<Token> tokens()
    {
        std::vector<Token> result;

        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == ' ') {
                at_++;
            } else if (std::isdigit(static_cast<unsigned char>(c)) || (c == '-' && !operand_)) { //@sign
                result.push_back(number()); //@number
                operand_ = true;
            } else {
                result.push_back(symbol(c));
            }
        }
        return result;
    }

private:
    Token number()
    {
        const bool negative = text_[at_] == '-';
        long value = 0;

        at_ += negative;
        while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
            value = value * 10 + (text_[at_++] - '0');
        return {Kind::Number, '0', negative ? -value : value};
    }

    Token symbol(char c)
    {
        at_++;
#ifdef FIXED
        operand_ = c == ')';
#else
        operand_ = false; //@operand
#endif
        if (c == '(')
            return {Kind::Open, c, 0};
        if (c == ')')
            return {Kind::Close, c, 0};
        return {Kind::Operator, c, 0};
    }

    std::string text_;
    std::size_t at_ = 0;
    bool operand_ = false;
};

class Machine {
public:
    void number(long value) { values_.push_back(value); }

    void apply(char op)
    {
        const long right = pop();
        const long left = pop();

        number(op == '+' ? left + right : op == '-' ? left - right : left * right);
    }

    long result()
    {
        const long value = pop();

        assert(values_.empty()); //@check
        return value;
    }

private:
    long pop()
    {
        assert(!values_.empty());
        const long value = values_.back();
        values_.pop_back();
        return value;
    }

    std::vector<long> values_;
};

int weight(char op) { return op == '*' ? 2 : op == '(' ? 0 : 1; }

long evaluate(const std::string &text)
{
    Machine machine;
    std::string waiting;

    for (const Token &token : Lexer(text).tokens()) { //@token
        if (token.kind == Kind::Number) {
            machine.number(token.value); //@value
        } else if (token.kind == Kind::Open) {
            waiting.push_back('(');
        } else {
            while (!waiting.empty() && waiting.back() != '(' &&
                   (token.kind == Kind::Close || weight(waiting.back()) >= weight(token.symbol))) {
                machine.apply(waiting.back());
                waiting.pop_back();
            }
            if (token.kind == Kind::Close)
                waiting.pop_back();
            else
                waiting.push_back(token.symbol);
        }
    }
    for (; !waiting.empty(); waiting.pop_back())
        machine.apply(waiting.back());
    return machine.result(); //@result
}

} // namespace calc

int main(int argc, char **argv)
{
    static const char *const known[] = {"1 + 2 * 3", "(4 + 5) * -2", "7 - -3", "(8 - 3) - 2", "2 * (6 - 1)", "9 - (2 + 2)"};
    timespec now{};

    clock_gettime(CLOCK_REALTIME, &now);
    const std::string text = argc > 1 ? argv[1] : known[now.tv_nsec / 1000 % 6]; //@input
    std::printf("%s = %ld\n", text.c_str(), calc::evaluate(text));
    return 0;
}
