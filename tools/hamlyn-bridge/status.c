// SPDX-License-Identifier: GPL-2.0-only
/* What there is to tell of a bridge: by itself, or to another process. */
#include "bridge.h"

const char *reason_text(u32 reason)
{
	switch (reason) {
	case SHM_PEER_SILENT:
		return "it does not answer";
	case SHM_PEER_LOST:
		return "the connection broke";
	case SHM_PEER_LEFT:
		return "the bridge here ended";
	case HML_WIRE_OK:
		return "closed at the other end";
	}
	return hml_wire_text(reason);
}

static void print_peer(const struct shm_peer *p, FILE *to)
{
	bool up = shm_peer_up(READ_ONCE(p->state));

	fprintf(to, "host %u %s", p->host, up ? "up" : "down");
	if (!up)
		fprintf(to, " (%s)", reason_text(p->reason));
	fprintf(to, " connections %u sent %llu (%llu bytes) received %llu (%llu bytes)",
		p->connections, (unsigned long long)p->sent, (unsigned long long)p->bytes_sent,
		(unsigned long long)p->received, (unsigned long long)p->bytes_received);
	fprintf(to, " lost %llu dropped %llu stalls %llu refused %llu\n",
		(unsigned long long)p->lost, (unsigned long long)p->dropped,
		(unsigned long long)p->stalls, (unsigned long long)p->refused);
}

void status_print(const struct shm_segment *seg, FILE *to)
{
	u32 i;

	fprintf(to, "host %u", seg->host);
	if (READ_ONCE(seg->bridge.owner))
		fprintf(to, " bridge %u\n", seg->bridge.pid);
	else
		fprintf(to, " no bridge\n");
	for (i = 0; i < shm_peers(seg); i++)
		if (seg->bridge.peer[i].host != seg->host)
			print_peer(&seg->bridge.peer[i], to);
}
