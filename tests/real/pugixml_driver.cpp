// SPDX-License-Identifier: MIT
// A queue of jobs in an XML document: one is removed, one is added, and all are counted. With pugixml.patch removing the last one leaves
// the first one's link to it, so that what is added then is added behind a node that is no longer there.
#include <pugixml.hpp>

#include <cstring>
#include <iterator>
#include <random>

static void finish(pugi::xml_node jobs, const char *name)
{
    for (pugi::xml_node job : jobs.children("job"))
        if (std::strcmp(job.attribute("name").value(), name) == 0) {
            jobs.remove_child(job);
            break;
        }
}

static void add(pugi::xml_node jobs, const char *name)
{
    jobs.append_child("job").append_attribute("name").set_value(name);
}

int main()
{
    static const char *const names[] = {"fetch", "build", "test"};
    pugi::xml_document document;
    pugi::xml_node jobs = document.append_child("jobs");
    long left;

    for (const char *name : names)
        add(jobs, name);
    finish(jobs, names[std::random_device{}() % 3]);
    add(jobs, "install");
    left = std::distance(jobs.begin(), jobs.end());
    return left == 3 ? 0 : 1;
}
