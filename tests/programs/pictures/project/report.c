/* SPDX-License-Identifier: MIT */
/* The library of reports. */
#include "report.h"
#include "store.h"

int report_balance(int items)
{
    return items - stock_left - stock_taken;
}
