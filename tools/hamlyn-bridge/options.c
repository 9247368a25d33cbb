// SPDX-License-Identifier: GPL-2.0-only
/* The command line. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bridge.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif

#define DEFAULT_FABRIC	"hamlyn"
#define ID_DIGITS	(2 * HAMLYN_FABRIC_ID_BYTES)
#define LEAST_MS	10
#define MOST_MS		3600000

enum {
	OPT_HOST = 256, OPT_ID_FROM, OPT_ID_FILE, OPT_LISTEN, OPT_PEER, OPT_CLEAR, OPT_DEAD_MS,
	OPT_STALL_MS, OPT_USERS, OPT_STATUS, OPT_QUIET, OPT_VERSION, OPT_HELP,
};

static const struct option names[] = {
	{ "host", required_argument, NULL, OPT_HOST },
	{ "id-from", required_argument, NULL, OPT_ID_FROM },
	{ "id-file", required_argument, NULL, OPT_ID_FILE },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "peer", required_argument, NULL, OPT_PEER },
	{ "clear", no_argument, NULL, OPT_CLEAR },
	{ "dead-ms", required_argument, NULL, OPT_DEAD_MS },
	{ "stall-ms", required_argument, NULL, OPT_STALL_MS },
	{ "users", required_argument, NULL, OPT_USERS },
	{ "status", no_argument, NULL, OPT_STATUS },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static void help(void)
{
	printf("usage: hamlyn-bridge shm:NAME --host N --peer N=ADDRESS[:PORT] [OPTION]...\n"
	       "       hamlyn-bridge shm:NAME --status\n\n"
	       "Joins the embedded device shm:NAME to those of other hosts, over TCP.\n\n"
	       "Options:\n"
	       "      --host N        the id of this host, which its peers know it by\n"
	       "      --peer N=ADDRESS[:PORT]  another host; again for each, up to %d\n"
	       "      --listen ADDRESS:PORT  where peers with smaller ids connect to\n"
	       "      --id-from NAME  the fabric's id, made from a name (default: %s)\n"
	       "      --id-file FILE  the fabric's id: %d hexadecimal digits, in a file that only\n"
	       "                      its owner may read; whoever does not know it is no peer\n"
	       "      --clear         addresses beside those of the loopback device: nothing\n"
	       "                      is encrypted; better let ssh or WireGuard carry it\n"
	       "      --dead-ms N     a peer is dead when nothing was heard for so long (5000)\n"
	       "      --stall-ms N    or when it has taken nothing for so long (1000)\n"
	       "      --users none|same  whom users of other hosts are taken for here (none)\n"
	       "      --status        print the state of the bridge that shm:NAME has, and end\n"
	       "      --quiet         do not tell of peers that come and go\n"
	       "      --version       print the version\n"
	       "      --help          print this text\n\n"
	       "SIGTERM ends it, SIGUSR1 prints what --status does.\n"
	       "Exit status: 0 after SIGTERM; 1 if it fails, 2 for a wrong command line.\n",
	       SHM_MAX_PEERS, DEFAULT_FABRIC, ID_DIGITS);
}

static int usage(void)
{
	say("see hamlyn-bridge --help");
	return -1;
}

static int parse_number(const char *name, const char *text, u32 least, u32 most, u32 *number)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < least || value > most) {
		say("%s takes a number from %u to %u, not \"%.80s\"", name, least, most, text);
		return -1;
	}
	*number = (u32)value;
	return 0;
}

/* ---- addresses ---- */

static bool take_four(const char *text, u16 port, struct address *a)
{
	struct sockaddr_in *s = (void *)&a->at;

	s->sin_family = AF_INET;
	s->sin_port = htons(port);
	a->length = sizeof(*s);
	return inet_pton(AF_INET, text, &s->sin_addr) == 1;
}

static bool take_six(const char *text, u16 port, struct address *a)
{
	struct sockaddr_in6 *s = (void *)&a->at;

	s->sin6_family = AF_INET6;
	s->sin6_port = htons(port);
	a->length = sizeof(*s);
	return inet_pton(AF_INET6, text, &s->sin6_addr) == 1;
}

/* The port behind the last colon, if there is one outside of brackets. */
static bool split(char *text, u32 *port)
{
	char *colon = strrchr(text, ':'), *end;
	unsigned long n;

	*port = 0;
	if (!colon || colon < strchr(text, ']') || (*text != '[' && strchr(text, ':') != colon))
		return true;
	errno = 0;
	n = strtoul(colon + 1, &end, 10);
	if (errno || colon[1] < '0' || colon[1] > '9' || *end || !n || n > 65535)
		return false;
	*colon = 0;
	*port = (u32)n;
	return true;
}

static bool take_address(const char *text, struct address *a)
{
	char copy[80], *host = copy;
	size_t n = strlen(text);
	u32 port;

	memset(a, 0, sizeof(*a));
	if (n >= sizeof(copy))
		return false;
	memcpy(copy, text, n + 1);
	if (!split(copy, &port))
		return false;
	n = strlen(host);
	if (*host == '[' && host[n - 1] == ']') {
		host[n - 1] = 0;
		host++;
	}
	a->has_port = port;
	return take_four(host, (u16)port, a) || (memset(&a->at, 0, sizeof(a->at)), false) ||
	       take_six(host, (u16)port, a);
}

bool address_same_host(const struct address *a, const struct address *b)
{
	const struct sockaddr_in6 *a6 = (const void *)&a->at, *b6 = (const void *)&b->at;
	const struct sockaddr_in *a4 = (const void *)&a->at, *b4 = (const void *)&b->at;

	if (a->at.ss_family != b->at.ss_family)
		return false;
	if (a->at.ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

bool address_is_loopback(const struct address *a)
{
	const struct sockaddr_in6 *six = (const void *)&a->at;
	const struct sockaddr_in *four = (const void *)&a->at;

	if (a->at.ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

void address_text(const struct address *a, char *text, size_t size)
{
	const struct sockaddr_in6 *six = (const void *)&a->at;
	const struct sockaddr_in *four = (const void *)&a->at;
	char host[INET6_ADDRSTRLEN] = "?";

	if (a->at.ss_family == AF_INET) {
		inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
		snprintf(text, size, "%s:%u", host, ntohs(four->sin_port));
	} else {
		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
		snprintf(text, size, "[%s]:%u", host, ntohs(six->sin6_port));
	}
}

static int parse_listen(const char *text, struct settings *set)
{
	if (take_address(text, &set->listen) && set->listen.has_port)
		return 0;
	say("--listen takes ADDRESS:PORT, in numbers, IPv6 in brackets; not \"%.80s\"", text);
	return -1;
}

static int parse_users(const char *text, struct settings *set)
{
	set->same_users = !strcmp(text, "same");
	if (set->same_users || !strcmp(text, "none"))
		return 0;
	say("--users takes none or same, not \"%.80s\"", text);
	return -1;
}

static int parse_peer(const char *text, struct settings *set)
{
	const char *is = strchr(text, '=');
	char number[16] = "";
	u32 host, i;

	if (is && (size_t)(is - text) < sizeof(number))
		memcpy(number, text, (size_t)(is - text));
	if (set->peers == SHM_MAX_PEERS) {
		say("there are at most %d peers", SHM_MAX_PEERS);
		return -1;
	}
	if (!*number || !take_address(is + 1, &set->peer[set->peers].address)) {
		say("--peer takes N=ADDRESS[:PORT], in numbers, IPv6 in brackets; not \"%.80s\"",
		    text);
		return -1;
	}
	if (parse_number("--peer", number, 0, HAMLYN_NONE - 1, &host))
		return -1;
	for (i = 0; i < set->peers; i++)
		if (set->peer[i].host == host) {
			say("--peer: host %u was named before", host);
			return -1;
		}
	set->peer[set->peers++].host = host;
	return 0;
}

/* ---- the fabric ---- */

/* As hamlynctl: FNV-1a of 128 bits. */
static void id_from_name(const char *name, u8 *id)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	unsigned __int128 hash = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
	size_t i;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * prime;
	for (i = HAMLYN_FABRIC_ID_BYTES; i--; hash >>= 8)
		id[i] = (u8)hash;
}

static bool take_digits(const char *text, u8 *id)
{
	u8 any = 0;
	size_t i;

	for (i = 0; i < ID_DIGITS; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = text[i] ? strchr(digits, text[i] | 0x20) : NULL;

		if (!d)
			return false;
		id[i / 2] = (u8)(id[i / 2] << 4 | (d - digits));
		any |= (u8)(d - digits);
	}
	return any;
}

/* Whoever may read it is a peer; so nobody else may. */
static int read_id(const char *name, u8 *id)
{
	char text[ID_DIGITS + 2] = "";
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st)) {
		say("--id-file %.80s: %s", name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077) {
		say("--id-file %.80s must be this user's, and nobody else's to read (mode 600)",
		    name);
		return -1;
	}
	if (n < ID_DIGITS || (n == ID_DIGITS + 1 && text[ID_DIGITS] != '\n') ||
	    !take_digits(text, id)) {
		say("--id-file %.80s must have %d hexadecimal digits, not all of them 0", name,
		    ID_DIGITS);
		return -1;
	}
	return 0;
}

static int parse_id_from(const char *text, struct settings *set)
{
	id_from_name(text, set->fabric);
	if (*text)
		return 0;
	say("--id-from takes a name, which is not empty");
	return -1;
}

/* ---- all of it ---- */

static int take(int id, struct settings *set)
{
	switch (id) {
	case OPT_HOST:
		return parse_number("--host", optarg, 0, HAMLYN_NONE - 1, &set->host);
	case OPT_ID_FROM:
		return parse_id_from(optarg, set);
	case OPT_ID_FILE:
		memset(set->fabric, 0, sizeof(set->fabric));
		return read_id(optarg, set->fabric);
	case OPT_LISTEN:
		return parse_listen(optarg, set);
	case OPT_PEER:
		return parse_peer(optarg, set);
	case OPT_CLEAR:
		set->clear = true;
		return 0;
	case OPT_DEAD_MS:
		return parse_number("--dead-ms", optarg, LEAST_MS, MOST_MS, &set->dead_ms);
	case OPT_STALL_MS:
		return parse_number("--stall-ms", optarg, LEAST_MS, MOST_MS, &set->stall_ms);
	case OPT_USERS:
		return parse_users(optarg, set);
	case OPT_STATUS:
		set->status = true;
		return 0;
	case OPT_QUIET:
		set->quiet = true;
		return 0;
	case OPT_VERSION:
		printf("hamlyn-bridge " HAMLYN_VERSION "\n");
		return 1;
	default:
		help();
		return 1;
	}
}

static int check_clear(const struct settings *set, const struct address *a)
{
	char text[64];

	if (!a->length || set->clear || address_is_loopback(a))
		return 0;
	address_text(a, text, sizeof(text));
	say("%s is not of the loopback device, and nothing is encrypted: let ssh or WireGuard "
	    "carry it, or say --clear", text);
	return -1;
}

static int check_peers(const struct settings *set)
{
	u32 i;

	for (i = 0; i < set->peers; i++) {
		u32 host = set->peer[i].host;
		const struct address *a = &set->peer[i].address;

		if (host == set->host) {
			say("--peer %u: that is this host", host);
			return -1;
		}
		if (host > set->host && !a->has_port) {
			say("--peer %u: we connect to hosts with greater ids, so a port is needed",
			    host);
			return -1;
		}
		if (host < set->host && !set->listen.length) {
			say("--peer %u: smaller ids connect to us, so --listen is needed",
			    host);
			return -1;
		}
		if (check_clear(set, a))
			return -1;
	}
	return check_clear(set, &set->listen);
}

/* What can be judged when all options are known only */
static int check(int argc, char **argv, struct settings *set, bool has_host)
{
	if (optind + 1 != argc || strncmp(argv[optind], "shm:", 4) || !argv[optind][4]) {
		say("which device? One is named, shm:NAME");
		return usage();
	}
	set->device = argv[optind];
	if (set->status)
		return 0;
	if (!has_host) {
		say("which host is this? --host takes its id");
		return usage();
	}
	if (!set->peers) {
		say("which other hosts are there? --peer names one");
		return usage();
	}
	return check_peers(set);
}

/* Of an unknown letter getopt tells only that; of a long option it is the word before */
static int wrong_option(int id, char **argv)
{
	const char *word = argv[optind - 1];

	if (id == ':')
		say("%.80s takes a value", word);
	else if (optopt >= OPT_HOST)
		say("%.80s: this option takes no value", word);
	else
		say("no option, or more than one, is called \"%.80s\"", word);
	return usage();
}

int options_parse(int argc, char **argv, struct settings *set)
{
	bool has_host = false;
	int id, ret;

	set->dead_ms = 5000;
	set->stall_ms = 1000;
	id_from_name(DEFAULT_FABRIC, set->fabric);
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":", names, NULL)) != -1) {
		if (id == '?' || id == ':')
			return wrong_option(id, argv);
		ret = take(id, set);
		if (ret)
			return ret;
		has_host |= id == OPT_HOST;
	}
	return check(argc, argv, set, has_host);
}
