// SPDX-License-Identifier: GPL-2.0-only
/* top: which NICs, peers and termini are busy. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <json-c/json.h>

#include "record/output.h"
#include "watch/top.h"

#define LINE_MAX_BYTES	512

const char top_help[] =
"\nOptions of top:\n"
"  -d, --delay SECONDS   between two pictures, from 0.1 to 3600 (1)\n"
"  -n, --count COUNT     end after that many pictures\n"
"  -b, --batch           plain text, one picture below the other; so it is also\n"
"                        when the output is no terminal\n"
"\nKeys: q quit, s next column to sort by, p pause.\n"
"Counters of NICs, and peers, are for administrators; others see their own termini.\n";

static const char *const sort_names[] = {
	[COUNT_MESSAGES] = "messages",
	[COUNT_PACKETS] = "packets",
	[COUNT_BYTES] = "bytes",
	[COUNT_FAILED] = "failed",
	[COUNT_REJECTS] = "rejects",
	[COUNTERS] = "pending",
};

int top_sample(struct top *top)
{
	struct sample before = top->now;
	int err = sample_take(&top->nl, &top->now);

	if (!err) {
		sample_rates(&top->now, &before);
		sample_sort(&top->now, top->sort);
	}
	sample_free(&before);
	return err;
}

/* Termini have no counter of rejects: that is for those who receive. */
void top_next_sort(struct top *top)
{
	do
		top->sort = (enum counter)((top->sort + 1) % (COUNTERS + 1));
	while (top->sort == COUNT_REJECTS);
	sample_sort(&top->now, top->sort);
}

/* ---- text --------------------------------------------------------------- */

/* At most six characters, decimal units. */
static const char *format_rate(uint64_t rate, char *text)
{
	static const char units[] = " kMGTPE";
	double value = (double)rate;
	int unit = 0;

	while (value >= 999.5 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	if (unit)
		sprintf(text, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value,
			units[unit]);
	else
		sprintf(text, "%" PRIu64, rate);
	return text;
}

static void add_rate(char *line, uint64_t rate, bool known)
{
	char text[32];

	sprintf(line + strlen(line), " %6s", known ? format_rate(rate, text) : "-");
}

static void add_rates(char *line, const uint64_t *rate, size_t first, size_t last, bool known)
{
	size_t i;

	for (i = first; i <= last; i++)
		add_rate(line, rate[i], known);
}

static const char *name_of(const char *const *names, size_t count, uint32_t number)
{
	return number < count ? names[number] : "?";
}

static void paint_nic(const struct nic_sample *nic, char *line)
{
	char label[32];

	snprintf(label, sizeof(label), "hamlyn%" PRIu32, nic->nic);
	sprintf(line, "%-9s %-5s %8" PRIu32 " %7" PRIu32, label,
		name_of(state_names, HAMLYN_NL_STATE_UNFED + 1, nic->state), nic->contexts,
		nic->termini);
	add_rates(line, nic->rate, COUNT_MESSAGES, COUNT_REJECTS, nic->counted);
}

/* Is it there; if not, why the last connection ended. */
static const char *state_of_peer(const struct peer_sample *peer)
{
	if (peer->state == HAMLYN_NL_PEER_STATE_UP || !peer->reason)
		return name_of(peer_state_names, HAMLYN_NL_PEER_STATE_UP + 1, peer->state);
	return name_of(peer_reason_names, HAMLYN_NL_PEER_REASON_DOWN + 1, peer->reason);
}

static int peer_place(const struct peer_sample *peer, char *text, size_t size)
{
	return snprintf(text, size, "hamlyn%" PRIu32 " %" PRIu32, peer->nic, peer->host);
}

static int terminus_place(const struct terminus_sample *terminus, char *text, size_t size)
{
	return snprintf(text, size, "hamlyn%" PRIu32 " %" PRIu32 "/%" PRIu32, terminus->nic,
			terminus->context, terminus->id);
}

/* How wide the first columns are: as what is in them, so that all fits where it can. */
struct widths {
	int peer, state, terminus;
};

static void widen(int *width, int length)
{
	if (length > *width)
		*width = length;
}

static struct widths find_widths(const struct sample *now)
{
	struct widths widths = { .peer = 9, .state = 5, .terminus = 11 };
	char text[40];
	size_t i;

	for (i = 0; i < now->peer_count; i++) {
		widen(&widths.peer, peer_place(&now->peers[i], text, sizeof(text)));
		widen(&widths.state, (int)strlen(state_of_peer(&now->peers[i])));
	}
	for (i = 0; i < now->terminus_count; i++)
		widen(&widths.terminus, terminus_place(&now->termini[i], text, sizeof(text)));
	return widths;
}

static void paint_peer(const struct peer_sample *peer, const struct widths *widths, char *line)
{
	char place[40];

	peer_place(peer, place, sizeof(place));
	sprintf(line, "%-*s %-*s %6" PRIu32, widths->peer, place, widths->state,
		state_of_peer(peer), peer->rtt_us);
	add_rates(line, peer->rate, 0, PEER_COUNTERS - 1, true);
}

/* As ps does it: a name that is cut says so. */
static void cut_name(char *name, size_t most)
{
	if (strlen(name) > most) {
		name[most - 1] = '+';
		name[most] = '\0';
	}
}

static void paint_terminus(const struct terminus_sample *terminus, const struct widths *widths,
			   bool wide, char *line)
{
	char *comm = clean_text(terminus->comm, strlen(terminus->comm));
	char place[40], user[33] = "-", pid[16] = "-", more[32] = "";

	terminus_place(terminus, place, sizeof(place));
	if (terminus->owned) {
		format_user(terminus->uid, user);
		snprintf(pid, sizeof(pid), "%" PRIu32, terminus->pid);
	}
	if (wide)
		snprintf(more, sizeof(more), " %-6s %2" PRIu32,
			 name_of(priority_names, HAMLYN_NL_PRIORITY_HIGH + 1, terminus->priority),
			 terminus->weight);
	else
		cut_name(user, 8);
	sprintf(line, "%-*s", widths->terminus, place);
	add_rate(line, terminus->rate[COUNT_MESSAGES], true);
	if (wide)
		add_rate(line, terminus->rate[COUNT_PACKETS], true);
	add_rates(line, terminus->rate, COUNT_BYTES, COUNT_FAILED, true);
	snprintf(line + strlen(line), LINE_MAX_BYTES - strlen(line),
		 " %5" PRIu32 "%s %-6s %7s %-8s %s", terminus->pending, more,
		 terminus->paused ? "paused" : terminus->active ? "active" : "asleep", pid, user,
		 *comm ? comm : "-");
	free(comm);
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static void paint_title(const struct top *top, char *line)
{
	const struct sample *now = &top->now;

	sprintf(line, "hamlyn: %zu NIC%s, %zu peer%s, %zu termin%s; a second, over %" PRIu64
		".%" PRIu64 "; by %s%s", now->nic_count, plural(now->nic_count), now->peer_count,
		plural(now->peer_count), now->terminus_count,
		now->terminus_count == 1 ? "us" : "i", now->since_ns / 1000000000,
		now->since_ns / 100000000 % 10, sort_names[top->sort],
		top->paused ? "; paused" : "");
}

/* Hosts that nobody has told this one of take no room. */
static bool paint_peers(const struct sample *now, const struct widths *widths, top_line_fn line,
			void *arg)
{
	char text[LINE_MAX_BYTES];
	size_t i;

	if (!now->peer_count)
		return true;
	sprintf(text, "%-*s %-*s %6s %6s %6s %6s %6s %6s %6s", widths->peer, "PEER",
		widths->state, "STATE", "RTT-US", "SENT", "RECV", "STALLS", "DROP", "LOST",
		"REFUSE");
	if (!line(arg, TOP_PLAIN, "") || !line(arg, TOP_HEAD, text))
		return false;
	for (i = 0; i < now->peer_count; i++) {
		paint_peer(&now->peers[i], widths, text);
		if (!line(arg, TOP_PLAIN, text))
			return false;
	}
	return true;
}

static void paint_termini(const struct sample *now, const struct widths *widths, bool wide,
			  top_line_fn line, void *arg)
{
	char text[LINE_MAX_BYTES];
	size_t i;

	sprintf(text, "%-*s %6s%s %6s %6s %5s%s %-6s %7s %-8s %s", widths->terminus, "TERMINUS",
		"MSG", wide ? "    PKT" : "", "BYTES", "FAILED", "PEND",
		wide ? " PRIO   WT" : "", "STATE", "PID", "USER", "COMMAND");
	if (!line(arg, TOP_PLAIN, "") || !line(arg, TOP_HEAD, text))
		return;
	for (i = 0; i < now->terminus_count; i++) {
		paint_terminus(now->order[i], widths, wide, text);
		if (!line(arg, TOP_PLAIN, text))
			return;
	}
}

void top_paint(const struct top *top, int width, top_line_fn line, void *arg)
{
	const struct sample *now = &top->now;
	struct widths widths = find_widths(now);
	char text[LINE_MAX_BYTES];
	size_t i;

	paint_title(top, text);
	if (!line(arg, TOP_PLAIN, text) || !line(arg, TOP_PLAIN, ""))
		return;
	sprintf(text, "%-9s %-5s %8s %7s %6s %6s %6s %6s %6s", "NIC", "STATE", "CONTEXTS",
		"TERMINI", "MSG", "PKT", "BYTES", "FAILED", "REJECT");
	if (!line(arg, TOP_HEAD, text))
		return;
	for (i = 0; i < now->nic_count; i++) {
		paint_nic(&now->nics[i], text);
		if (!line(arg, TOP_PLAIN, text))
			return;
	}
	if (paint_peers(now, &widths, line, arg))
		paint_termini(now, &widths, width >= TOP_WIDE, line, arg);
}

/* ---- JSON --------------------------------------------------------------- */

static void add(struct json_object *object, const char *name, struct json_object *value)
{
	if (json_object_object_add(object, name, must_alloc(value)) < 0)
		must_alloc(NULL);
}

static void add_number(struct json_object *object, const char *name, uint64_t number)
{
	add(object, name, json_object_new_uint64(number));
}

static void add_nic(struct json_object *object, uint32_t nic)
{
	char name[32];

	snprintf(name, sizeof(name), "hamlyn%" PRIu32, nic);
	add_number(object, "nic", nic);
	add(object, "name", json_object_new_string(name));
}

static void add_json_rates(struct json_object *object, const uint64_t *rate, size_t count)
{
	char name[32];
	size_t i;

	for (i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s_per_s", sort_names[i]);
		add_number(object, name, rate[i]);
	}
}

static struct json_object *json_nic(const struct nic_sample *nic)
{
	struct json_object *object = must_alloc(json_object_new_object());

	add_nic(object, nic->nic);
	add(object, "state", json_object_new_string(name_of(state_names,
							    HAMLYN_NL_STATE_UNFED + 1,
							    nic->state)));
	add_number(object, "contexts", nic->contexts);
	add_number(object, "termini", nic->termini);
	if (nic->counted)
		add_json_rates(object, nic->rate, COUNTERS);
	return object;
}

static struct json_object *json_peer(const struct peer_sample *peer)
{
	static const char *const names[PEER_COUNTERS] = {
		[PEER_SENT_BYTES] = "sent_bytes_per_s",
		[PEER_RECEIVED_BYTES] = "received_bytes_per_s",
		[PEER_STALLS] = "stalls_per_s",
		[PEER_DROPPED] = "dropped_per_s",
		[PEER_LOST] = "lost_per_s",
		[PEER_REFUSED] = "refused_per_s",
	};
	struct json_object *object = must_alloc(json_object_new_object());
	size_t i;

	add_nic(object, peer->nic);
	add_number(object, "host", peer->host);
	add(object, "state", json_object_new_string(name_of(peer_state_names,
							    HAMLYN_NL_PEER_STATE_UP + 1,
							    peer->state)));
	add(object, "reason", json_object_new_string(name_of(peer_reason_names,
							     HAMLYN_NL_PEER_REASON_DOWN + 1,
							     peer->reason)));
	add_number(object, "rtt_us", peer->rtt_us);
	for (i = 0; i < PEER_COUNTERS; i++)
		add_number(object, names[i], peer->rate[i]);
	return object;
}

static struct json_object *json_terminus(const struct terminus_sample *terminus)
{
	struct json_object *object = must_alloc(json_object_new_object());
	char *comm = clean_utf8(terminus->comm, strlen(terminus->comm));

	add_nic(object, terminus->nic);
	add_number(object, "context", terminus->context);
	add_number(object, "id", terminus->id);
	add_json_rates(object, terminus->rate, COUNT_FAILED + 1);
	add_number(object, "pending", terminus->pending);
	add(object, "priority",
	    json_object_new_string(name_of(priority_names, HAMLYN_NL_PRIORITY_HIGH + 1,
					   terminus->priority)));
	add_number(object, "weight", terminus->weight);
	add(object, "active", json_object_new_boolean(terminus->active));
	add(object, "paused", json_object_new_boolean(terminus->paused));
	if (terminus->owned) {
		add_number(object, "pid", terminus->pid);
		add_number(object, "uid", terminus->uid);
		add(object, "comm", json_object_new_string(comm));
	}
	free(comm);
	return object;
}

static void print_json(const struct top *top, const struct options *options)
{
	struct json_object *object = must_alloc(json_object_new_object());
	struct json_object *nics = must_alloc(json_object_new_array());
	struct json_object *peers = must_alloc(json_object_new_array());
	struct json_object *termini = must_alloc(json_object_new_array());
	size_t i;

	for (i = 0; i < top->now.nic_count; i++)
		json_object_array_add(nics, json_nic(&top->now.nics[i]));
	for (i = 0; i < top->now.peer_count; i++)
		json_object_array_add(peers, json_peer(&top->now.peers[i]));
	for (i = 0; i < top->now.terminus_count; i++)
		json_object_array_add(termini, json_terminus(top->now.order[i]));
	add_number(object, "interval_ms", top->now.since_ns / 1000000);
	add(object, "nics", nics);
	add(object, "peers", peers);
	add(object, "termini", termini);
	output_json(options, object);
}

/* ---- pictures one below the other --------------------------------------- */

static bool print_line(void *arg, enum top_style style, const char *text)
{
	(void)arg;
	(void)style;
	puts(text);
	return true;
}

static int print_picture(const struct top *top, const struct options *options, bool first)
{
	int width = terminal_width();

	if (options->json) {
		print_json(top, options);
	} else {
		if (!first)
			putchar('\n');
		if (top->keys)
			puts("(no live screen on this terminal; q ends it)");
		top_paint(top, width ? width : TOP_WIDE, print_line, NULL);
	}
	return output_check();
}

/* Where there is no screen there may be a keyboard. */
static struct termios keyboard;

static void take_keyboard(struct top *top)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &keyboard))
		return;
	raw = keyboard;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	top->keys = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void give_keyboard_back(const struct top *top)
{
	if (top->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &keyboard);
}

/* True: it is to end. Other keys do not shorten the wait. */
static bool wait_for_q(const struct top *top, uint32_t milliseconds)
{
	uint32_t left = milliseconds;
	char key;

	if (!top->keys) {
		stop_wait(-1, (int)milliseconds);
		return stop_asked();
	}
	while (!stop_asked() && left) {
		uint32_t nap = left < 100 ? left : 100;

		if (stop_wait(STDIN_FILENO, (int)nap) &&
		    (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
			return true;
		left -= nap;
	}
	return stop_asked();
}

/* The first picture comes after one delay: before, there are no rates. */
static int top_batch(struct top *top, const struct options *options)
{
	int err = top_sample(top), status = STATUS_OK;
	uint64_t i;

	stop_on_signal();
	for (i = 1; !err && !status; i++) {
		if (wait_for_q(top, options->delay_ms))
			break;
		err = top_sample(top);
		if (!err)
			status = print_picture(top, options, i == 1);
		if (i == options->count)
			break;
	}
	return err ? netlink_refused(&top->nl, "top", err) : status;
}

/* It is said again with each picture: the warning goes out of sight. */
static int top_without_screen(struct top *top, const struct options *options)
{
	int status;

	take_keyboard(top);
	status = top_batch(top, options);
	give_keyboard_back(top);
	return status;
}

static int top_run(const struct options *options, const struct verb *verb, struct words *words)
{
	struct top top = { .sort = COUNT_MESSAGES };
	int status = words_end(words);

	(void)verb;
	if (!status)
		status = netlink_open(&top.nl);
	if (status)
		return status;
	top.nl.quiet = true;
	if (options->batch || options->json || !isatty(STDOUT_FILENO))
		status = top_batch(&top, options);
	else
		status = top_screen(&top, options);
	if (status < 0)
		status = top_without_screen(&top, options);
	sample_free(&top.now);
	netlink_close(&top.nl);
	return status;
}

static const struct verb verbs[] = {
	{ "", "[-d SECONDS] [-n COUNT] [-b]", "busy NICs, peers and termini, until interrupted",
	  NULL, top_run },
	{ 0 }
};

const struct object top_object = { "top", "what is busy, live", verbs };
