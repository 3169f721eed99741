// SPDX-License-Identifier: MIT
// Virtual calls: what may run is what the object's class, and those derived from it, have in that place of their tables.
struct shape {
    virtual ~shape() {}
    virtual int sides() const = 0;
    virtual int colour() const { return 1; }
};
struct square : shape {                                   //@in
    int sides() const override { return 4; }              //@in
};
struct star : shape {                                     //@in
    int points = 0;                                       //@in
    int sides() const override { return points; }         //@in
    int colour() const override { return 7; }
};
struct other {
    virtual int unlike() const { return 9; }
    virtual int sides() const { return 8; }
};
static int count(const shape &s)
{
    return s.sides();                                     //@in
}
int main(int argc, char **)
{
    other o;
    star a;                                               //@in
    square b;                                             //@in
    const other *p = &o;
    static int unused;
    unused = p->sides() + p->unlike() + a.colour();
    int n = argc > 1 ? count(b) : count(a);               //@in
    return 6 / n;                                         //@fail
}
