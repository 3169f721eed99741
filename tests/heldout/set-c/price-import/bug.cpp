/* SPDX-License-Identifier: MIT */
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

class Money
{
public:
	Money() = default;
	explicit Money(long cents) : cents{cents} {}
	Money operator+(Money other) const { return Money{cents + other.cents}; }
	Money operator*(int count) const { return Money{cents * count}; }
	bool operator!=(Money other) const { return cents != other.cents; } //@compare
	long value() const { return cents; }

private:
	long cents = 0;
};

class Field
{
public:
	virtual ~Field() = default;
	virtual bool accept(const std::string &text) = 0;
};

class PriceField : public Field
{
public:
	bool accept(const std::string &text) override
	{
		long whole = 0, part = 0, digits = 0;
		std::size_t i = 0;

		for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); i++)
			whole = whole * 10 + (text[i] - '0');
		if (i < text.size() && text[i++] != '.')
			return false;
		for (; i < text.size() && digits < 2; i++, digits++) //@digits
			part = part * 10 + (text[i] - '0'); //@part
#ifdef FIXED
		for (; digits < 2; digits++)
			part *= 10;
#endif
		price = Money{whole * 100 + part}; //@price
		return true;
	}

	Money price;
};

class CountField : public Field
{
public:
	bool accept(const std::string &text) override
	{
		count = std::atoi(text.c_str());
		return count > 0;
	}

	int count = 0;
};

class Invoice
{
public:
	bool row(const std::string &line)
	{
		std::istringstream stream{line};
		std::string what, price, count;
		PriceField each;
		CountField pieces;

		if (!(stream >> what >> price >> count))
			return false;
		if (what == "total")
			return declare(price);
		if (!each.accept(price) || !pieces.accept(count)) //@accept
			return false;
		sum = sum + each.price * pieces.count; //@sum
		return true;
	}

	bool balanced() const { return !(sum != declared); } //@balanced

	long off() const { return declared.value() - sum.value(); }

private:
	bool declare(const std::string &text)
	{
		PriceField field;
		const bool good = field.accept(text);
		declared = field.price;
		return good;
	}

	Money sum, declared;
};

int main(int argc, char **argv)
{
	static const char *const invoices[] = {
		"pen 1.25 4\nink 3.50 2\ntotal 12.00 1\n",
		"cup 2.5 2\nbowl 4.00 1\ntotal 9.00 1\n",
		"bolt 0.05 100\nnut 0.03 100\ntotal 8.00 1\n",
		"lamp 20 1\nbulb 3.75 2\ntotal 27.50 1\n",
		"desk 99.99 1\ntotal 99.99 1\n",
	};
	timespec now{};
	Invoice invoice;
	std::string line;

	clock_gettime(CLOCK_REALTIME, &now);
	const long pick = argc > 1 ? std::atol(argv[1]) : now.tv_nsec / 1000; //@input
	std::istringstream lines{invoices[pick % 5]};
	while (std::getline(lines, line))
		if (!invoice.row(line)) //@row
			return 1;
	if (!invoice.balanced()) { //@check
		std::printf("off by %ld\n", invoice.off());
		return 6; //@fail
	}
	std::puts("balanced");
	return 0;
}
