/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <list>
#include <sstream>
#include <string>
#include <vector>

class Person
{
public:
	Person(const char *name, Person *boss) : name{name}, boss{boss} {}
	const char *name;
	Person *boss;
	std::vector<Person *> reports;
};

class Company
{
public:
	Company() { people.emplace_back("ruth", nullptr); }

	Person *find(const std::string &name)
	{
		for (Person &person : people)
			if (person.name && name == person.name)
				return &person;
		return nullptr;
	}

	void hire(const char *name, const std::string &boss)
	{
		Person *above = find(boss);
		if (!above)
			return;
		people.emplace_back(name, above);
		above->reports.push_back(&people.back());
	}

	// The reports of one who leaves go to the next above.
	void leaves(const std::string &name)
	{
		Person *person = find(name);
		if (!person || !person->boss)
			return;
#ifdef FIXED
		while (!person->reports.empty())
			transfer(*person->reports.front(), *person->boss);
#else
		for (std::size_t i = 0; i < person->reports.size(); i++) //@each
			transfer(*person->reports[i], *person->boss); //@transfer
#endif
		drop(person->boss->reports, person);
		person->name = nullptr; //@gone
		person->boss = nullptr;
	}

	std::string chain(const std::string &name)
	{
		std::string text;
		for (Person *person = find(name); person; person = person->boss) //@up
			text += describe(*person) + " "; //@link
		return text;
	}

	const std::list<Person> &everybody() const { return people; }

private:
	static void drop(std::vector<Person *> &list, Person *person)
	{
		for (auto it = list.begin(); it != list.end(); ++it)
			if (*it == person) {
				list.erase(it); //@erase
				return;
			}
	}

	static void transfer(Person &person, Person &to)
	{
		drop(person.boss->reports, &person); //@drop
		person.boss = &to; //@move
		to.reports.push_back(&person);
	}

	static std::string describe(const Person &person)
	{
		std::string initial(1, *person.name); //@initial
		return initial + "(" + std::to_string(person.reports.size()) + ")";
	}

	std::list<Person> people;
};

int main(int argc, char **argv)
{
	static const char *const events[] = {
		"olga", "nina ivan", "sven", "ivan olga", "emil sven nina",
	};
	timespec now{};
	Company company;

	clock_gettime(CLOCK_REALTIME, &now);
	const long pick = argc > 1 ? std::atol(argv[1]) : now.tv_nsec / 1000; //@input
	company.hire("olga", "ruth");
	company.hire("sven", "ruth");
	company.hire("nina", "olga");
	company.hire("ivan", "olga");
	company.hire("emil", "sven");
	std::istringstream leaving(events[pick % 5]);
	for (std::string name; leaving >> name;) //@name
		company.leaves(name); //@leaves
	for (const Person &person : company.everybody())
		if (person.name)
			std::printf("%s: %s\n", person.name, company.chain(person.name).c_str()); //@chain
	return 0;
}
