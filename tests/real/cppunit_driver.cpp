// SPDX-License-Identifier: MIT
// A suite of three tests, one of which throws when its device is not ready. With cppunit.patch the runner lets what is not one of its
// own exceptions through, and the program ends by std::terminate().
#include <cppunit/TestResult.h>
#include <cppunit/TestResultCollector.h>
#include <cppunit/TestSuite.h>
#include <cppunit/extensions/HelperMacros.h>

#include <random>
#include <stdexcept>
#include <string>

static int device_state()
{
    return static_cast<int>(std::random_device{}() % 3);
}

static std::string open_device(int state)
{
    if (state == 0)
        throw std::runtime_error("the device is not ready");
    return "device " + std::to_string(state);
}

class DeviceTest : public CppUnit::TestFixture
{
    CPPUNIT_TEST_SUITE(DeviceTest);
    CPPUNIT_TEST(counts);
    CPPUNIT_TEST(opens);
    CPPUNIT_TEST(closes);
    CPPUNIT_TEST_SUITE_END();

public:
    void counts()
    {
        CPPUNIT_ASSERT_EQUAL(3, 1 + 2);
    }
    void opens()
    {
        CPPUNIT_ASSERT(!open_device(device_state()).empty());
    }
    void closes()
    {
        CPPUNIT_ASSERT(true);
    }
};

int main()
{
    CppUnit::TestResult controller;
    CppUnit::TestResultCollector results;
    CppUnit::Test *suite = DeviceTest::suite();

    controller.addListener(&results);
    suite->run(&controller);
    delete suite;
    return results.runTests() == 3 ? 0 : 1;
}
