/* SPDX-License-Identifier: MIT */
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

struct Node {
	explicit Node(std::function<void()> work) : work{std::move(work)} {}
	std::function<void()> work;
	std::vector<Node *> next;
	int before = 0;
	bool done = false;
	bool queued = false;
};

class Graph
{
public:
	Node &add(std::function<void()> work)
	{
		const std::lock_guard lock{mutex};
		nodes.push_back(std::make_unique<Node>(std::move(work)));
		left++;
		return *nodes.back();
	}

	// The second node is to run after the first.
	void order(Node &first, Node &second)
	{
		const std::lock_guard lock{mutex};
		if (first.done) //@finished
			return;
		first.next.push_back(&second); //@edge
		second.before++; //@before
	}

	void release(Node &node)
	{
		const std::lock_guard lock{mutex};
		if (node.before == 0) //@blocked
			enqueue(node);
	}

	void work()
	{
		std::unique_lock lock{mutex};
		while (left > 0) {
			if (ready.empty()) {
				changed.wait(lock); //@wait
				continue;
			}
			Node &node = *ready.front();
			ready.pop_front();
#ifdef FIXED
			lock.unlock();
			node.work();
			lock.lock();
			const std::vector<Node *> next = node.next;
#else
			const std::vector<Node *> next = node.next; //@copy
			lock.unlock();
			node.work(); //@work
			lock.lock();
#endif
			node.done = true; //@done
			left--;
			for (Node *follower : next) //@each
				if (--follower->before == 0)
					enqueue(*follower);
			changed.notify_all();
		}
	}

private:
	void enqueue(Node &node)
	{
		if (node.queued)
			return;
		node.queued = true;
		ready.push_back(&node);
		changed.notify_all();
	}

	std::mutex mutex;
	std::condition_variable changed;
	std::vector<std::unique_ptr<Node>> nodes;
	std::deque<Node *> ready;
	int left = 0;
};

static std::function<void()> task(int &counter, unsigned most)
{
	static std::random_device dice;
	const std::chrono::microseconds span{dice() % most};

	return [&counter, span] {
		std::this_thread::sleep_for(span);
		counter++;
	};
}

int main()
{
	Graph graph;
	int fetched = 0, parsed = 0, stored = 0;
	Node &fetch = graph.add(task(fetched, 500));
	Node &parse = graph.add(task(parsed, 500));
	Node &store = graph.add(task(stored, 100));

	graph.order(fetch, parse);
	graph.release(fetch);
	std::thread worker{[&graph] { graph.work(); }};
	task(stored, 2200)();
	graph.order(parse, store); //@order
	graph.release(store); //@release
	worker.join(); //@join
	std::printf("%d %d %d\n", fetched, parsed, stored - 1);
	return 0;
}
