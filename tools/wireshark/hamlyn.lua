-- SPDX-License-Identifier: GPL-2.0-only
--
-- Wireshark: Hamlyn between hosts, over TCP. The format is in Documentation/fabrics.rst; what
-- is marked as refused is what driver/core/wire.c closes a connection for.
--
-- In ~/.local/lib/wireshark/plugins, or: tshark -X lua_script:hamlyn.lua -r FILE
-- Ports other than 927: -o hamlyn.ports:927,7500

local hamlyn = Proto("hamlyn", "Hamlyn between hosts")

local PORT = 927
local VERSION = 1
local MAGIC = "48616d6c796e2121"	-- Hamlyn!!
local HEADER = 16
local MOST_METADATA = 60
local MOST_NAME = 63
local MOST_SAID = 256
local MOST_PAYLOAD = 2 ^ 24		-- while no HELLO has said what the packet size is
local HELLO, BYE = 1, 8

-- enum hml_wire_verdict
local verdicts = {
	[0] = "closed by an administrator",
	"ended within a frame",
	"a frame of a version that was not agreed",
	"a frame of an unknown type",
	"a frame of a wrong length",
	"a frame with an unknown flag or value",
	"a packet longer than the packet size",
	"something before HELLO, or a second HELLO",
	"a frame of another connection",
	"a frame is missing or came twice",
	"not a Hamlyn network interface",
	"no version of the format in common",
	"another fabric id",
	"the same host id on both sides",
	"not the host id that is configured",
	"another packet size",
	"a connection older than the last one",
	"there is another connection",
	"nothing was heard for too long",
	"nothing was taken for too long",
}
local BAD_VERSION, BAD_TYPE, BAD_LENGTH, BAD_FLAGS, TOO_LONG, BAD_ORDER = 2, 3, 4, 5, 6, 7
local BAD_EPOCH, BAD_SEQUENCE, BAD_MAGIC, NO_VERSION, OTHER_FABRIC = 8, 9, 10, 11, 12
local SAME_HOST, OTHER_PACKET, OLD_EPOCH = 13, 15, 16

local watch_whys = { [0] = "the slot is gone", "somebody else has claimed it" }

local answers = {
	[0] = "answered",
	"nobody has that name",
	"too many calls wait there",
	"whoever had the name is gone",
}

local packet_flags = {
	{ "single", 0x01, "The message's only packet" },
	{ "fast", 0x02, "A word in place of a metadata entry" },
	{ "no_notify", 0x04, "Complete silently" },
	{ "quiet", 0x08, "Wake nobody for it" },
	{ "ticket", 0x10, "It has a ticket's key" },
}
local watch_flags = {
	{ "ticket", 0x1, "The key is a ticket's descriptor" },
	{ "claim", 0x2, "And claim the slot" },
}

--[[
Frames. A member: name, bytes (a number, the name of a member that says it, or "rest"), what it
is, and what there is to it:
  hex      shown so
  names    what its values mean; known = true: others are refused
  flags    bits; others are refused
  zero     refused if it is not
  nonzero  refused if it is
  when     there only if that bit of "flags" is set
  text     printable: others are refused
  most     bytes of it, if they are the rest
"info" are members for the line of the list. "check" is what else there is to a frame, and
"lengths" says that the receiver looks at them before all else.
]]
local value_of, is_zero

-- Nobody says anything of an answer that nobody gave.
local function check_answer(placed)
	if value_of(placed, "status"):uint() == 0 then
		return nil
	end
	if value_of(placed, "said") then
		return BAD_LENGTH
	end
	return not is_zero(value_of(placed, "user")) and BAD_FLAGS or nil
end

local frames = {
	[HELLO] = { "HELLO", {
		{ "magic", 8, "Magic number", hex = true },
		{ "least", 1, "Lowest version" },
		{ "greatest", 1, "Highest version" },
		{ "flags", 2, "Flags", hex = true, zero = true },
		{ "host", 4, "Host id" },
		{ "fabric_id", 16, "Fabric id", raw = true },
		{ "incarnation", 8, "Incarnation", hex = true, nonzero = true },
		{ "packet_size", 4, "Packet size" },
		{ "features", 4, "Features", hex = true },
	}, info = { "host", "packet_size" } },
	[2] = { "DATA", {
		{ "flags", 2, "Flags", flags = packet_flags },
		{ "meta_length", 2, "Bytes of metadata" },
		{ "slot", 4, "Slot" },
		{ "meta_index", 4, "Metadata entry", hex = true },
		{ "delta", 4, "For the packet accumulator" },
		{ "key", 8, "Protection key", hex = true },
		{ "offset", 8, "Offset in the message area" },
		{ "sender", 4, "Sender" },
		{ "user", 4, "User, as its host claims" },
		{ "ticket_key", 8, "Ticket key", hex = true, when = 0x10 },
		{ "word", 8, "Word", hex = true, when = 0x02 },
		{ "metadata", "meta_length", "Metadata", raw = true },
	}, info = { "slot", "offset" }, most = 40 + 8 + 8 + MOST_METADATA, payload = true },
	[3] = { "PING", { { "stamp", 8, "Time stamp", hex = true } }, info = {} },
	[4] = { "PONG", { { "stamp", 8, "Time stamp of PING", hex = true } }, info = {} },
	[5] = { "WATCH", {
		{ "id", 4, "Watch" },
		{ "flags", 4, "Flags", flags = watch_flags },
		{ "slot", 4, "Slot" },
		{ "meta_index", 4, "Metadata entry", hex = true },
		{ "key", 8, "Key", hex = true },
		{ "user", 4, "User, as its host claims" },
		{ "reserved", 4, "Reserved", hex = true, zero = true },
	}, info = { "id", "slot" } },
	[6] = { "UNWATCH", {
		{ "id", 4, "Watch" },
		{ "why", 4, "Reserved", hex = true, zero = true },
	}, info = { "id" } },
	[7] = { "GONE", {
		{ "id", 4, "Watch" },
		{ "why", 4, "Why", names = watch_whys, known = true },
	}, info = { "id" } },
	[BYE] = { "BYE", {
		{ "verdict", 4, "Verdict", names = verdicts },
		{ "reserved", 4, "Reserved", hex = true, zero = true },
	}, info = { "verdict" } },
	[9] = { "CALL", {
		{ "id", 4, "Call" },
		{ "user", 4, "User, as its host claims" },
		{ "name_length", 2, "Bytes of the name", nonzero = true },
		{ "reserved", 2, "Reserved", hex = true, zero = true },
		{ "share", 8, "Share, of its host's", hex = true },
		{ "name", "name_length", "Name", text = true },
		{ "said", "rest", "What is said", raw = true, most = MOST_SAID },
	}, info = { "id" }, least = 20 + 1, most = 20 + MOST_NAME + MOST_SAID, lengths = true },
	[10] = { "ANSWER", {
		{ "id", 4, "Call" },
		{ "status", 4, "Status", names = answers, known = true },
		{ "user", 4, "User, as its host claims" },
		{ "said", "rest", "What is said", raw = true, most = MOST_SAID },
	}, info = { "id", "status" }, most = 12 + MOST_SAID, check = check_answer },
	[11] = { "CANCEL", {
		{ "id", 4, "Call" },
		{ "why", 4, "Reserved", hex = true, zero = true },
	}, info = { "id" } },
}

-- ---- fields ----

local fields = {}	-- those of the frame header, and by type and name the others

local types = {}
for number, frame in pairs(frames) do
	types[number] = frame[1]
end
fields.version = ProtoField.uint8("hamlyn.version", "Version")
fields.type = ProtoField.uint8("hamlyn.type", "Type", base.DEC, types)
fields.header_bytes = ProtoField.uint16("hamlyn.header_bytes", "Bytes of the body")
fields.payload_bytes = ProtoField.uint32("hamlyn.payload_bytes", "Bytes of payload")
fields.epoch = ProtoField.uint32("hamlyn.epoch", "Epoch")
fields.sequence = ProtoField.uint32("hamlyn.sequence", "Sequence")
fields.payload = ProtoField.bytes("hamlyn.payload", "Payload")
fields.refused = ProtoField.uint32("hamlyn.refused", "Refused by the receiver", base.DEC, verdicts)
local numbers = { [1] = "uint8", [2] = "uint16", [4] = "uint32", [8] = "uint64" }

local function new_field(abbreviation, member)
	local _, bytes, text = table.unpack(member)

	if member.raw then
		return ProtoField.bytes(abbreviation, text)
	end
	if member.text then
		return ProtoField.string(abbreviation, text)
	end
	return ProtoField[numbers[bytes]](abbreviation, text, member.hex and base.HEX or base.DEC,
					  member.names)
end

local all = {}
for number, frame in pairs(frames) do
	local prefix = "hamlyn." .. frame[1]:lower() .. "."

	fields[number] = {}
	for _, member in ipairs(frame[2]) do
		local name, bytes = table.unpack(member)
		local field

		if member.flags then
			field = ProtoField["uint" .. bytes * 8](prefix .. name, member[3], base.HEX)
			for _, flag in ipairs(member.flags) do
				local bit = ProtoField.bool(prefix .. name .. "." .. flag[1], flag[3],
							    bytes * 8, nil, flag[2])

				fields[number][name .. "." .. flag[1]] = bit
				table.insert(all, bit)
			end
		else
			field = new_field(prefix .. name, member)
		end
		fields[number][name] = field
		table.insert(all, field)
	end
end
for _, field in pairs({ "version", "type", "header_bytes", "payload_bytes", "epoch", "sequence",
			"payload", "refused" }) do
	table.insert(all, fields[field])
end
hamlyn.fields = all

local experts = {
	refused = ProtoExpert.new("hamlyn.expert.refused", "The receiver closes the connection",
				  expert.group.PROTOCOL, expert.severity.ERROR),
	no_hello = ProtoExpert.new("hamlyn.expert.no_hello", "No HELLO before it in this capture",
				   expert.group.SEQUENCE, expert.severity.WARN),
	bye = ProtoExpert.new("hamlyn.expert.bye", "The sender closes the connection",
			      expert.group.SEQUENCE, expert.severity.NOTE),
	key = ProtoExpert.new("hamlyn.expert.key", "A key in clear text",
			      expert.group.SECURITY, expert.severity.CHAT),
}
hamlyn.experts = { experts.refused, experts.no_hello, experts.bye, experts.key }

-- ---- what is known of connections ----

local stream_of = Field.new("tcp.stream")
local sides		-- by stream, address and port of the sender: what it has said
local newest_epochs	-- by incarnation
local seen		-- by packet and place: what was found when it was seen first

function hamlyn.init()
	sides = {}
	newest_epochs = {}
	seen = {}
end

local function side(address, port)
	local key = tostring(stream_of()) .. " " .. tostring(address) .. " " .. port

	if not sides[key] then
		sides[key] = {}
	end
	return sides[key]
end

-- ---- frames ----

local function header_of(tvb)
	return {
		version = tvb(0, 1):uint(),
		type = tvb(1, 1):uint(),
		header_bytes = tvb(2, 2):uint(),
		payload_bytes = tvb(4, 4):uint(),
		epoch = tvb(8, 4):uint(),
		sequence = tvb(12, 4):uint(),
	}
end

local function least_body(frame)
	local bytes = 0

	for _, member in ipairs(frame[2]) do
		if not member.when and type(member[2]) == "number" then
			bytes = bytes + member[2]
		end
	end
	return bytes
end

-- As hml_wire_parse(): a verdict, or nil
local function check_header(header, packet_size)
	local frame = frames[header.type]

	if header.version ~= VERSION then
		return BAD_VERSION
	end
	if not frame then
		return BAD_TYPE
	end
	local least = frame.least or least_body(frame)
	if header.header_bytes < least or header.header_bytes > (frame.most or least) then
		return BAD_LENGTH
	end
	if not frame.payload then
		return header.payload_bytes ~= 0 and BAD_LENGTH or nil
	end
	return header.payload_bytes > packet_size and TOO_LONG or nil
end

-- The members that are there, each with its place, and what is wrong with them or nil
local function place_members(frame, body)
	local placed, at, value, verdict = {}, 0, {}, nil

	for _, member in ipairs(frame[2]) do
		local name, bytes = table.unpack(member)

		if member.when and bit.band(value.flags, member.when) == 0 then
			bytes = 0
		elseif bytes == "rest" then
			bytes = body:len() - at
		elseif type(bytes) == "string" then
			bytes = value[bytes]
		end
		if at + bytes > body:len() then
			return placed, BAD_LENGTH
		end
		if bytes > 0 then
			local range = body(at, bytes)

			table.insert(placed, { member, range })
			if bytes <= 4 and not member.raw and not member.text then
				value[name] = range:uint()
			end
		end
		if member.most and bytes > member.most then
			verdict = BAD_LENGTH
		end
		at = at + bytes
	end
	if at ~= body:len() or (value.meta_length or 0) > MOST_METADATA then
		verdict = BAD_LENGTH
	end
	return placed, verdict
end

function is_zero(range)
	return not range:bytes():tohex():find("[^0]")
end

-- As hml_wire_name_ok()
local function is_name(range)
	return range:len() <= MOST_NAME and not range:bytes():raw():find("[^!-.0-~]")
end

local function check_member(member, range)
	if member.text and not is_name(range) then
		return BAD_FLAGS
	end
	if member.zero and not is_zero(range) or member.nonzero and is_zero(range) then
		return BAD_FLAGS
	end
	if member.known and not member.names[range:uint()] then
		return BAD_FLAGS
	end
	if member.flags then
		local known = 0

		for _, flag in ipairs(member.flags) do
			known = bit.bor(known, flag[2])
		end
		return bit.band(range:uint(), bit.bnot(known)) ~= 0 and BAD_FLAGS or nil
	end
end

-- As hml_wire_unpack_...(): flags before lengths
local function check_members(frame, body)
	local placed, verdict = place_members(frame, body)

	if frame.lengths and verdict then
		return placed, verdict
	end
	for _, one in ipairs(placed) do
		local wrong = check_member(table.unpack(one))

		if wrong then
			return placed, wrong
		end
	end
	return placed, verdict or (frame.check and frame.check(placed))
end

function value_of(placed, name)
	for _, one in ipairs(placed) do
		if one[1][1] == name then
			return one[2]
		end
	end
end

-- As hml_wire_check_hello(), of what both sides have said
local function check_hello(hello, theirs)
	if hello.least > hello.greatest then
		return NO_VERSION
	end
	if not theirs then
		return nil
	end
	if hello.least > theirs.greatest or hello.greatest < theirs.least then
		return NO_VERSION
	end
	if hello.fabric ~= theirs.fabric then
		return OTHER_FABRIC
	end
	if hello.host == theirs.host then
		return SAME_HOST
	end
	return hello.packet_size ~= theirs.packet_size and OTHER_PACKET or nil
end

-- Is there a newer one of the same incarnation, in whichever connection?
local function is_old(incarnation, epoch)
	local newest = newest_epochs[incarnation]

	newest_epochs[incarnation] = epoch
	return newest and (epoch == newest or (epoch - newest) % 2 ^ 32 >= 2 ^ 31)
end

local function take_hello(header, placed, wrong, own, other)
	if own.hello then
		return BAD_ORDER
	end
	if value_of(placed, "magic"):bytes():tohex():lower() ~= MAGIC then
		return BAD_MAGIC
	end
	own.hello = {
		least = value_of(placed, "least"):uint(),
		greatest = value_of(placed, "greatest"):uint(),
		fabric = value_of(placed, "fabric_id"):bytes():tohex(),
		host = value_of(placed, "host"):uint(),
		packet_size = value_of(placed, "packet_size"):uint(),
	}
	own.epoch = header.epoch
	own.sequence = 1
	wrong = wrong or check_hello(own.hello, other.hello)
	if wrong then
		return wrong
	end
	if header.sequence ~= 0 then
		return BAD_SEQUENCE
	end
	return is_old(value_of(placed, "incarnation"):bytes():tohex(), header.epoch) and
	       OLD_EPOCH or nil
end

-- As hml_wire_rx_take(); the second result: it is the first frame, and no HELLO
local function take_next(header, own)
	local epoch, sequence = own.epoch, own.sequence

	own.epoch = header.epoch
	own.sequence = (header.sequence + 1) % 2 ^ 32
	if not epoch then
		return nil, true
	end
	if header.epoch ~= epoch then
		return BAD_EPOCH
	end
	return header.sequence ~= sequence and BAD_SEQUENCE or nil
end

-- In the order in which the receiver looks
local function take(header, placed, wrong, own, other)
	if header.type == HELLO then
		return take_hello(header, placed, wrong, own, other)
	end
	-- Whoever refuses a HELLO may say so at once.
	if header.type == BYE then
		return wrong
	end
	local verdict, no_hello = take_next(header, own)

	return verdict or wrong, no_hello
end

-- Once for each frame: later passes see them in any order. Behind what it refuses the receiver
-- reads nothing.
local function judge(tvb, pinfo, header, placed, verdict, wrong)
	local key = pinfo.number .. ":" .. tvb:offset() .. ":" .. tvb:len()
	local own, other, no_hello

	if seen[key] then
		return seen[key]
	end
	own = side(pinfo.src, pinfo.src_port)
	other = side(pinfo.dst, pinfo.dst_port)
	if not verdict and not own.refused then
		verdict, no_hello = take(header, placed, wrong, own, other)
	end
	if own.refused then
		verdict = nil
	end
	own.refused = own.refused or verdict
	seen[key] = { verdict = verdict, no_hello = no_hello }
	return seen[key]
end

local function add_member(tree, number, member, range)
	local name = member[1]
	local item = tree:add(fields[number][name], range)

	for _, flag in ipairs(member.flags or {}) do
		item:add(fields[number][name .. "." .. flag[1]], range)
	end
	return item
end

local function describe(frame, placed, header)
	local text = frame[1]

	for _, name in ipairs(frame.info) do
		local range = value_of(placed, name)

		if range then
			local value = range:len() == 8 and tostring(range:uint64()) or
				      tostring(range:uint())

			text = text .. " " .. name .. "=" .. value
		end
	end
	return frame.payload and text .. " length=" .. header.payload_bytes or text
end

local function add_body(tree, tvb, header)
	local frame = frames[header.type]
	local body = tvb(HEADER, header.header_bytes)
	local placed, wrong = check_members(frame, body:tvb())
	local bytes = header.payload_bytes

	for _, one in ipairs(placed) do
		add_member(tree, header.type, table.unpack(one))
	end
	if bytes > 0 then
		tree:add(fields.payload, tvb(HEADER + header.header_bytes, bytes))
	end
	return placed, wrong
end

local function add_header(tree, tvb)
	tree:add(fields.version, tvb(0, 1))
	tree:add(fields.type, tvb(1, 1))
	tree:add(fields.header_bytes, tvb(2, 2))
	tree:add(fields.payload_bytes, tvb(4, 4))
	tree:add(fields.epoch, tvb(8, 4))
	tree:add(fields.sequence, tvb(12, 4))
end

local function add_expert(tree, found, placed)
	if found.no_hello then
		tree:add_proto_expert_info(experts.no_hello)
	end
	local said = value_of(placed, "verdict")

	if said and not found.verdict then
		local why = verdicts[said:uint()] or "a reason that only a newer version knows"

		tree:add_proto_expert_info(experts.bye, "The sender closes the connection: " .. why)
	end
	if value_of(placed, "key") then
		tree:add_proto_expert_info(experts.key)
	end
	if found.verdict then
		tree:add(fields.refused, found.verdict):set_generated()
		tree:add_proto_expert_info(experts.refused, "Refused: " .. verdicts[found.verdict])
	end
end

local function packet_size_of(pinfo)
	local own, other = side(pinfo.src, pinfo.src_port), side(pinfo.dst, pinfo.dst_port)
	local hello = other.hello or own.hello

	return hello and hello.packet_size or MOST_PAYLOAD
end

local function dissect_frame(tvb, pinfo, root)
	local header = header_of(tvb)
	local frame = frames[header.type]
	local verdict = check_header(header, packet_size_of(pinfo))
	local tree = root:add(hamlyn, tvb())
	local placed, wrong = {}, nil

	add_header(tree, tvb)
	if not verdict then
		placed, wrong = add_body(tree, tvb, header)
	end
	local found = judge(tvb, pinfo, header, placed, verdict, wrong)
	local text = frame and describe(frame, placed, header) or "type " .. header.type

	if found.verdict then
		text = text .. " [refused]"
	end
	tree:append_text(", " .. text)
	pinfo.cols.info:append((tostring(pinfo.cols.info) ~= "" and ", " or "") .. text)
	add_expert(tree, found, placed)
	return tvb:len()
end

-- Behind what is no frame there are none: all of it is one.
local function frame_bytes(tvb, pinfo, offset)
	local header = header_of(tvb(offset, HEADER):tvb())

	if check_header(header, packet_size_of(pinfo)) then
		return tvb:len() - offset
	end
	return HEADER + header.header_bytes + header.payload_bytes
end

function hamlyn.dissector(tvb, pinfo, root)
	pinfo.cols.protocol = "Hamlyn"
	pinfo.cols.info = ""
	dissect_tcp_pdus(tvb, root, HEADER, frame_bytes, dissect_frame)
	return tvb:len()
end

-- At whatever port: each side begins with its HELLO.
local function is_hello(tvb, pinfo, root)
	if tvb:len() < HEADER + 8 or tvb(1, 1):uint() ~= HELLO or
	   tvb(HEADER, 8):bytes():tohex():lower() ~= MAGIC then
		return false
	end
	pinfo.conversation = hamlyn
	hamlyn.dissector(tvb, pinfo, root)
	return true
end

hamlyn:register_heuristic("tcp", is_hello)

-- The heuristic is not asked where a port of the connection is known for something else.
local ports = DissectorTable.get("tcp.port")

hamlyn.prefs.ports = Pref.range("TCP ports", tostring(PORT), "Ports of NICs", 65535)
local added = hamlyn.prefs.ports
ports:add(added, hamlyn)

function hamlyn.prefs_changed()
	if added ~= hamlyn.prefs.ports then
		ports:remove(added, hamlyn)
		added = hamlyn.prefs.ports
		ports:add(added, hamlyn)
	end
end
