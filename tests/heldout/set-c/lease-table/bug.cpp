/* SPDX-License-Identifier: MIT */
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>

template <typename Key>
class LeaseTable
{
public:
	using Tick = long;

	void grant(const Key &key, Tick until)
	{
		const std::lock_guard lock{mutex};
		leases[key] = Lease{until, false};
	}

	bool renew(const Key &key, Tick until)
	{
		const std::lock_guard lock{mutex};
		auto it = leases.find(key);
		if (it == leases.end() || it->second.revoked) //@still
			return false;
		it->second.until = until; //@renew
		return true;
	}

	bool holds(const Key &key) const
	{
		const std::lock_guard lock{mutex};
		auto it = leases.find(key);
		return it != leases.end() && !it->second.revoked; //@holds
	}

	// Takes back the leases that have run out.
	void sweep(Tick now)
	{
		for (const Key &key : expired(now)) { //@each
			notify(key);
			revoke(key, now); //@call
		}
	}

private:
	struct Lease {
		Tick until = 0;
		bool revoked = false;
	};

	std::list<Key> expired(Tick now) const
	{
		const std::lock_guard lock{mutex};
		std::list<Key> keys;
		for (const auto &[key, lease] : leases)
			if (!lease.revoked && lease.until <= now) //@until
				keys.push_back(key); //@collect
		return keys;
	}

	void revoke(const Key &key, [[maybe_unused]] Tick now)
	{
		const std::lock_guard lock{mutex};
#ifdef FIXED
		if (leases[key].until > now)
			return;
#endif
		leases[key].revoked = true; //@revoke
	}

	void notify(const Key &key) const
	{
		std::this_thread::sleep_for(std::chrono::microseconds(key.size() * 10));
	}

	mutable std::mutex mutex;
	std::unordered_map<Key, Lease> leases;
};

class Holder
{
public:
	Holder(LeaseTable<std::string> &table, std::string key) : table{table}, key{std::move(key)}
	{
		table.grant(this->key, 2);
	}

	void run(std::chrono::microseconds wait)
	{
		std::this_thread::sleep_for(wait);
		if (!table.renew(key, 100)) { //@renewed
			lost++;
			return;
		}
		std::this_thread::sleep_for(std::chrono::microseconds(400));
		assert(table.holds(key)); //@check
		kept++;
	}

	int kept = 0, lost = 0;

private:
	LeaseTable<std::string> &table;
	std::string key;
};

int main()
{
	std::random_device dice;
	LeaseTable<std::string> table;
	Holder first{table, "printer"}, second{table, "scanner"};
	const std::chrono::microseconds waits[] = {std::chrono::microseconds(dice() % 1400),
						   std::chrono::microseconds(dice() % 1400)};

	std::thread a{[&] { first.run(waits[0]); }};
	std::thread b{[&] { second.run(waits[1]); }};
	std::thread sweeper{[&] {
		for (LeaseTable<std::string>::Tick now = 0; now < 5; now++) {
			table.sweep(now);
			std::this_thread::sleep_for(std::chrono::microseconds(250));
		}
	}};
	a.join();
	b.join();
	sweeper.join();
	std::printf("%d kept, %d lost\n", first.kept + second.kept, first.lost + second.lost);
	return 0;
}
