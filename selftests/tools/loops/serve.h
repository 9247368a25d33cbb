/* SPDX-License-Identifier: GPL-2.0-only */
/* A server for somebody else's event loop, and what it needs of that. */
#ifndef SERVE_H
#define SERVE_H

enum watched { LISTENER, MANAGER, WATCHED };

/**
 * struct loop - an event loop
 * @name: for people
 * @begin: make it
 * @watch: from now on call @ready whenever @fd is readable
 * @ignore: no more; the descriptor may be closed afterwards
 * @every: from now on call @tick again and again
 * @run: until stop is called
 * @stop: may be called by @ready and @tick
 * @finish: nothing of it is left
 */
struct loop {
	const char *name;
	void (*begin)(void);
	void (*watch)(enum watched which, int fd, void (*ready)(void));
	void (*ignore)(enum watched which);
	void (*every)(unsigned int ms, void (*tick)(void));
	void (*run)(void);
	void (*stop)(void);
	void (*finish)(void);
};

/* Serve clients, check what comes of it, say so. Returns the program's exit status. */
int serve(const struct loop *loop);

#endif /* SERVE_H */
