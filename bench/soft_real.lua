-- SPDX-License-Identifier: MIT
-- What bench/soft_real.sh has lua do: a little of everything, coroutines and errors too.
local t = {} for i=1,200 do t[i] = tostring(i*7919 % 1000) end table.sort(t) local s = table.concat(t, ",") local n=0 for w in s:gmatch("%d+") do n = n + #w end print(n, pcall(error, "x"), string.format("%5.2f %q", 1.5, "a\nb"))
local co = coroutine.wrap(function() for i=1,5 do coroutine.yield(i) end end) for i=1,5 do n = n + co() end print(n, select('#', string.byte("hello", 1, -1)))
