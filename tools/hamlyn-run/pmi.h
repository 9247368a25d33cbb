/* SPDX-License-Identifier: GPL-2.0-only */
/* The launcher's side of PMI-1. */
#ifndef RUN_PMI_H
#define RUN_PMI_H

#include <stdbool.h>
#include <stddef.h>

#include "kvs.h"
#include "pmi_line.h"

enum pmi_state {
	PMI_STRANGER,	/* has not said init; a program that never does is fine */
	PMI_JOINED,	/* has to say finalize before it ends */
	PMI_LEFT,
};

/**
 * struct pmi_client - one process
 * @fd: our end of its socket, or -1
 * @far: it is on another host: answers go to @send of the server
 * @rank: its number
 * @state: how far it has come
 * @waiting: for the others, in a barrier
 * @len: bytes in @in
 * @in: what has come of a line
 */
struct pmi_client {
	int fd;
	bool far;
	int rank;
	enum pmi_state state;
	bool waiting;
	size_t len;
	char in[PMI_LINE_BYTES];
};

/**
 * struct pmi_server - all processes
 * @clients: each of them
 * @size: their number
 * @name: of the store, and so of this run
 * @kvs: the store
 * @send: takes an answer to a process that is far; never waits
 * @context: for @send
 * @status: exit status after a failure
 * @error: and what to say
 */
struct pmi_server {
	struct pmi_client *clients;
	int size;
	char name[KVS_KEY_BYTES];
	struct kvs kvs;
	void (*send)(void *context, int rank, const char *text, size_t n);
	void *context;
	int status;
	char error[320];
};

void pmi_init(struct pmi_server *server, int size);
void pmi_uninit(struct pmi_server *server);

/* How many wait in the barrier, and @first of them */
int pmi_waiting(const struct pmi_server *server, int *first);

/* Those who wait in the barrier are told that it has failed. Return: 0 or -1 */
int pmi_refuse(struct pmi_server *server);

/* Its socket becomes ours. */
void pmi_attach(struct pmi_server *server, int rank, int fd);

/*
 * Answers what a process has sent; never waits.
 * Return: 1 if there was something, 0 if not or no longer, -1 after a failure with @error
 * and @status of @server.
 */
int pmi_serve(struct pmi_server *server, int rank);

/* @n bytes of a process that is far. Return: 0, or -1 as pmi_serve() */
int pmi_feed(struct pmi_server *server, int rank, const char *text, size_t n);

/* A process that is far does not read the answers: @error says so */
void pmi_deaf(struct pmi_server *server, int rank);

/* The process has ended: answers what is left, then closes its socket. Return: 0 or -1 */
int pmi_detach(struct pmi_server *server, int rank);

#endif /* RUN_PMI_H */
