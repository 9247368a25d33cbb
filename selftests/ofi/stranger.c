// SPDX-License-Identifier: GPL-2.0-only
/*
 * For hosts-test.sh. "serve": an end point without connections that makes progress for a while;
 * its port is on standard output. "ask HOST PORT ADDRESS": asks the one at that host, by name, for
 * a link, and says that it has that address; the answer is on standard output.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect/conn.h"
#include "pair.h"

#define MAGIC	0x31696668U

static int serve(void)
{
	const struct options options = { .rdm = true };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct sockaddr_in address;
	size_t length = sizeof(address);
	struct end end;
	int64_t until = now_ms() + patience_ms();

	hints->fabric_attr->prov_name = strdup("hamlyn");
	hints->ep_attr->type = FI_EP_RDM;
	/* That ofi_rxm does not have */
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA_EVENT | FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_SOURCE, hints, &info) ||
	    end_open(&end, info, &options) || end_endpoint(&end, info, &options) ||
	    fi_getname(&end.ep->fid, &address, &length))
		return 1;
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	while (now_ms() < until)
		(void)fi_cntr_read(end.cntr[0]);
	return 0;
}

static int say(struct h_channel *line, struct h_manager *manager, const struct sockaddr_in *claim)
{
	struct hf_hello hello = { .magic = MAGIC, .version = 1, .kind = HF_HELLO_LINK };
	struct h_channel *channel;

	if (h_channel_create(manager, NULL, &channel))
		return -1;
	h_channel_seed(channel, &hello.seed);
	h_dev_fabric(h_manager_dev(manager), &hello.fabric);
	hello.address = *claim;
	return h_channel_send(line, &hello, sizeof(hello), H_FOREVER);
}

static int ask(const char *host, const char *port, const char *address)
{
	struct sockaddr_in claim = { .sin_family = AF_INET, .sin_port = htons(12345) };
	struct h_message answer;
	struct h_manager *manager;
	struct h_channel *line;
	struct hf_hello hello;
	struct h_dev *dev;
	char path[64];

	snprintf(path, sizeof(path), "%s/hamlyn-fi-%s", host, port);
	if (inet_pton(AF_INET, address, &claim.sin_addr) != 1 || h_open(NULL, &dev) ||
	    h_manager_create(dev, NULL, &manager))
		return 1;
	/* Who is turned away may be so before it has said anything. */
	if (h_channel_connect(manager, path, NULL, &line, patience_ms() * 1000000) ||
	    say(line, manager, &claim) ||
	    h_channel_receive(line, &answer, patience_ms() * 1000000) ||
	    answer.length != sizeof(hello)) {
		puts("none");
		return 0;
	}
	memcpy(&hello, answer.data, sizeof(hello));
	puts(hello.kind == HF_HELLO_ACCEPT ? "yes" : "no");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve"))
		return serve();
	if (argc == 5 && !strcmp(argv[1], "ask"))
		return ask(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: stranger serve | ask HOST PORT ADDRESS\n");
	return 2;
}
