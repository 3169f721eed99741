/* SPDX-License-Identifier: MIT */
#include <atomic>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

static void hesitate(unsigned most)
{
	timespec ts{};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	usleep(static_cast<unsigned>(ts.tv_nsec / 110) % most);
}

// Two places for a value: one to read, one to write.
template <typename T>
class Pair
{
public:
	const T &acquire()
	{
#ifdef FIXED
		pthread_mutex_lock(&mutex);
#endif
		return places[front.load()]; //@acquire
	}

	void release()
	{
#ifdef FIXED
		pthread_mutex_unlock(&mutex);
#endif
	}

	void publish(const T &value)
	{
#ifdef FIXED
		pthread_mutex_lock(&mutex);
#endif
		const int back = 1 - front.load(); //@back
		places[back] = value; //@place
		front.store(back); //@flip
#ifdef FIXED
		pthread_mutex_unlock(&mutex);
#endif
	}

private:
	T places[2]{};
	std::atomic<int> front{0};
#ifdef FIXED
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif
};

struct Quote {
	int price = 0;
	int size = 0;
};

class Thread
{
public:
	virtual ~Thread() = default;
	void start() { pthread_create(&id, nullptr, enter, this); }
	void join() { pthread_join(id, nullptr); }

private:
	static void *enter(void *self)
	{
		static_cast<Thread *>(self)->run();
		return nullptr;
	}

	virtual void run() = 0;
	pthread_t id{};
};

class Exchange : public Thread
{
public:
	explicit Exchange(Pair<Quote> &board) : board{board} {}

private:
	void run() override
	{
		for (int i = 1; i <= 5; i++) {
			board.publish(Quote{i * 10, i * 10}); //@publish
			hesitate(700);
		}
	}

	Pair<Quote> &board;
};

class Trader : public Thread
{
public:
	explicit Trader(Pair<Quote> &board) : board{board} {}
	std::vector<std::string> lines;

private:
	void run() override
	{
		for (int i = 0; i < 3; i++) {
			hesitate(800);
			const Quote &quote = board.acquire(); //@quote
			std::string line = "price " + std::to_string(quote.price); //@price
			hesitate(350);
			line += " size " + std::to_string(quote.size); //@size
			board.release();
			lines.push_back(line); //@line
		}
	}

	Pair<Quote> &board;
};

int main()
{
	Pair<Quote> board;
	Exchange exchange{board};
	Trader trader{board};

	exchange.start();
	trader.start();
	exchange.join();
	trader.join();
	for (const std::string &line : trader.lines)
		std::printf("%s\n", line.c_str()); //@print
	return 0;
}
