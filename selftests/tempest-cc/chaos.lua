-- SPDX-License-Identifier: GPL-2.0-only
-- Sorts, strings, closures, coroutines and garbage: prints the same every time.
local scale = tonumber(arg and arg[1]) or 1
local seed = 42
local function random(n)
	seed = (seed * 1103515245 + 12345) % 2147483648
	return seed // 8 % n + 1
end

local list = {}
for i = 1, 3000 * scale do list[i] = random(100000) end
table.sort(list)
print("sort", list[1], list[#list // 2], list[#list])

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
print("fib", fib(18))

local words, count = {}, 0
for i = 1, 2000 * scale do
	local word = string.format("w%d", random(500))
	if not words[word] then count = count + 1 end
	words[word] = (words[word] or 0) + i
end
local sum = 0
for _, n in pairs(words) do sum = sum + n end
print("words", count, sum)

local text = string.rep("the quick brown fox ", 40 * scale)
text = text:gsub("%w+", function(w) return w:sub(-1) .. w:upper() end)
print("text", #text, text:sub(1, 40), select(2, text:gsub("X", "")))

local n = 20
local a, b, c = {}, {}, {}
for i = 1, n do
	a[i], b[i], c[i] = {}, {}, {}
	for j = 1, n do a[i][j], b[i][j] = i + j / 7, i - j / 3 end
end
for i = 1, n do
	for j = 1, n do
		local s = 0.0
		for k = 1, n do s = s + a[i][k] * b[k][j] end
		c[i][j] = s
	end
end
print("matrix", string.format("%.6f %.6f", c[1][1], c[n][n]))

local function numbers(limit)
	return coroutine.wrap(function()
		for i = 1, limit do coroutine.yield({ i, tostring(i) }) end
	end)
end
local total = 0
for pair in numbers(500 * scale) do total = total + pair[1] + #pair[2] end
print("coroutines", total)

local ok, message = pcall(function() error({ code = random(100) }) end)
print("error", ok, message.code)

local tree = nil
for i = 1, 800 * scale do
	local key, node = random(10000), nil
	local leaf = { key = key }
	if not tree then tree = leaf else
		node = tree
		while true do
			local side = key < node.key and "left" or "right"
			if not node[side] then node[side] = leaf break end
			node = node[side]
		end
	end
	if i % 200 == 0 then collectgarbage() end
end
local function depth(t) return t and 1 + math.max(depth(t.left), depth(t.right)) or 0 end
print("tree", depth(tree))
