// SPDX-License-Identifier: MIT
// What a lookup returns is used without asking whether it found anything.
#include "../corpus.h"

struct user {
    const char *name;
    int id;
};
static struct user users[] = {{"ann", 1}, {"bob", 2}, {"eve", 3}};

static struct user *find(const char *name)
{
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(users[i].name, name) == 0)       //@compare
            return &users[i];                       //@found
    return NULL;                                    //@none
}

int main(void)
{
    static const char *const names[] = {"ann", "eve", "dan"};
    const char *name = names[draw(3)];              //@input
    struct user *u = find(name);                    //@find

#ifdef FIXED
    if (!u)
        return 0;
#endif
    return u->id > 9;                               //@use
}
