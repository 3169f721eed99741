/* SPDX-License-Identifier: MIT */
int report_balance(int items);
