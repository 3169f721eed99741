/* SPDX-License-Identifier: MIT */
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <pthread.h>
#include <vector>

// Where the blocks of numbers come from.
class Source
{
public:
	explicit Source(long size) : size{size} {}
	long block() { return taken.fetch_add(size) + 1; }
	long blocks() const { return taken.load() / size; }
	const long size;

private:
	std::atomic<long> taken{0};
};

class Numbers
{
public:
	explicit Numbers(Source &source) : source{source} {}

	long next()
	{
#ifdef FIXED
		pthread_mutex_lock(&mutex);
		if (used.load() >= source.size)
			refill();
		const long place = used.fetch_add(1);
		const long start = first.load();
		pthread_mutex_unlock(&mutex);
		return start + place;
#else
		for (;;) {
			const long place = used.fetch_add(1); //@place
			if (place < source.size) //@inside
				return first.load() + place; //@number
			pthread_mutex_lock(&mutex);
			if (used.load() >= source.size)
				refill();
			pthread_mutex_unlock(&mutex);
		}
#endif
	}

private:
	void refill()
	{
		first.store(source.block()); //@first
		used.store(0); //@used
	}

	Source &source;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	std::atomic<long> first{0};
	std::atomic<long> used{1000};
};

template <std::size_t Count>
class Issuer
{
public:
	explicit Issuer(Numbers &numbers) : numbers{numbers} {}

	void start() { pthread_create(&id, nullptr, &Issuer::enter, this); }

	void join() { pthread_join(id, nullptr); }

	const std::array<long, Count> &list() const { return issued; }

private:
	static void *enter(void *self)
	{
		auto &issuer = *static_cast<Issuer *>(self);
		for (long &number : issuer.issued)
			number = issuer.numbers.next(); //@issue
		return nullptr;
	}

	Numbers &numbers;
	std::array<long, Count> issued{};
	pthread_t id{};
};

template <std::size_t Count>
static long repeated(const std::vector<Issuer<Count>> &issuers)
{
	std::vector<long> all;

	for (const auto &issuer : issuers)
		all.insert(all.end(), issuer.list().begin(), issuer.list().end());
	std::sort(all.begin(), all.end());
	return std::unique(all.begin(), all.end()) == all.end() ? 0 : 1; //@repeated
}

int main()
{
	Source source{4};
	Numbers numbers{source};
	std::vector<Issuer<3>> issuers(2, Issuer<3>{numbers});

	for (auto &issuer : issuers)
		issuer.start();
	for (auto &issuer : issuers)
		issuer.join();
	std::printf("%ld blocks\n", source.blocks());
	if (repeated(issuers) != 0) //@check
		return 9; //@fail
	return 0;
}
