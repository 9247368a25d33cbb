// SPDX-License-Identifier: MIT
/*
 * Bodies that attract each other, after Barnes and Hut: a tree of squares, each with its
 * mass, so that what is far away counts as one body. All nodes insert their bodies in the
 * tree at once; a square is locked while it is changed. The tree does not depend on the order,
 * and so neither do the forces.
 *
 *	hamlyn-run -n 4 tree [BODIES [STEPS]]
 */
#include <math.h>

#include "example.h"

#define QUARTERS	4
#define FAR		0.5	/* a square's side to its distance: less is one body */
#define SOFT		0.0001	/* what is close attracts no more than this allows */
#define STEP		0.001

struct body {
	double x, y, mass;
	double speed_x, speed_y;
};

/**
 * struct square - a square, and what is in it
 * @body: the only body in it, or -1
 * @quarters: squares it is divided into, or -1; all are -1 if it is a leaf
 * @x: of the centre of mass, and @y, @mass, of all that is in it
 */
struct square {
	int body;
	int quarters[QUARTERS];
	double x, y, mass;
};

/**
 * struct world - all of it; each node has squares of its own to take from
 * @bodies: all
 * @squares: root first
 * @used: by each node, of its squares
 */
struct world {
	struct body *bodies;
	struct square *squares;
	int used[64];
};

static int bodies = 64, steps = 2, squares_each;
static int is_shared;

static void lock(const struct square *square)
{
	if (is_shared)
		stache_lock(square);
}

static void unlock(const struct square *square)
{
	if (is_shared)
		stache_unlock(square);
}

/* ---- building ---- */

static int new_square(struct world *world, int self)
{
	int index = self * squares_each + world->used[self]++;
	struct square *square = &world->squares[index];

	if (world->used[self] > squares_each)
		abort();
	*square = (struct square){ .body = -1, .quarters = { -1, -1, -1, -1 } };
	return index;
}

struct area {
	double x, y, half;
};

/* The quarter of an area that a body is in; the area becomes that. */
static int descend(struct area *area, const struct body *body)
{
	int quarter = (body->x >= area->x) + 2 * (body->y >= area->y);

	area->half /= 2;
	area->x += quarter & 1 ? area->half : -area->half;
	area->y += quarter & 2 ? area->half : -area->half;
	return quarter;
}

static int is_leaf(const struct square *square)
{
	for (int i = 0; i < QUARTERS; i++) {
		if (square->quarters[i] >= 0)
			return 0;
	}
	return 1;
}

/* A leaf with a body is divided until both are apart. */
static void insert(struct world *world, int self, int index)
{
	struct square *square = world->squares;
	struct area area = { 0.5, 0.5, 0.5 };

	for (;;) {
		int quarter, *next;

		lock(square);
		if (is_leaf(square) && square->body < 0) {
			square->body = index;
			unlock(square);
			return;
		}
		if (is_leaf(square)) {
			struct area inner = area;
			int old = square->body;

			quarter = descend(&inner, &world->bodies[old]);
			square->body = -1;
			square->quarters[quarter] = new_square(world, self);
			world->squares[square->quarters[quarter]].body = old;
		}
		quarter = descend(&area, &world->bodies[index]);
		next = &square->quarters[quarter];
		if (*next < 0)
			*next = new_square(world, self);
		unlock(square);
		square = &world->squares[*next];
	}
}

static void weigh(struct world *world, int index)
{
	struct square *square = &world->squares[index];
	double x = 0, y = 0, mass = 0;

	if (square->body >= 0) {
		const struct body *body = &world->bodies[square->body];

		square->x = body->x;
		square->y = body->y;
		square->mass = body->mass;
		return;
	}
	for (int i = 0; i < QUARTERS; i++) {
		const struct square *quarter;

		if (square->quarters[i] < 0)
			continue;
		weigh(world, square->quarters[i]);
		quarter = &world->squares[square->quarters[i]];
		x += quarter->x * quarter->mass;
		y += quarter->y * quarter->mass;
		mass += quarter->mass;
	}
	square->x = x / mass;
	square->y = y / mass;
	square->mass = mass;
}

/* ---- moving ---- */

static void attract(const struct world *world, int self, int index, double side, double force[2])
{
	const struct square *square = &world->squares[index];
	const struct body *body = &world->bodies[self];
	double x = square->x - body->x, y = square->y - body->y;
	double distance = sqrt(x * x + y * y + SOFT);

	if (square->body == self)
		return;
	if (square->body >= 0 || side < FAR * distance) {
		force[0] += square->mass * x / (distance * distance * distance);
		force[1] += square->mass * y / (distance * distance * distance);
		return;
	}
	for (int i = 0; i < QUARTERS; i++) {
		if (square->quarters[i] >= 0)
			attract(world, self, square->quarters[i], side / 2, force);
	}
}

static double inside(double at)
{
	return at < 0 ? 0 : at >= 1 ? 0.999999 : at;
}

static void speed_up(struct world *world, int first, int end)
{
	for (int i = first; i < end; i++) {
		double force[2] = { 0, 0 };

		attract(world, i, 0, 1, force);
		world->bodies[i].speed_x += STEP * force[0];
		world->bodies[i].speed_y += STEP * force[1];
	}
}

static void move(struct world *world, int first, int end)
{
	for (int i = first; i < end; i++) {
		struct body *body = &world->bodies[i];

		body->x = inside(body->x + STEP * body->speed_x);
		body->y = inside(body->y + STEP * body->speed_y);
	}
}

static void wait_for_all(void)
{
	if (is_shared)
		TPPI_barrier();
}

static void run(struct world *world, int self, int first, int end)
{
	for (int step = 0; step < steps; step++) {
		world->used[self] = 0;
		if (!self)
			new_square(world, 0);
		wait_for_all();
		for (int i = first; i < end; i++)
			insert(world, self, i);
		wait_for_all();
		if (!self)
			weigh(world, 0);
		wait_for_all();
		speed_up(world, first, end);
		wait_for_all();
		move(world, first, end);
		wait_for_all();
	}
}

static void fill(struct body *all)
{
	unsigned int seed = 1;

	for (int i = 0; i < bodies; i++)
		all[i] = (struct body){ chance(&seed), chance(&seed), 1 + chance(&seed), 0, 0 };
}

int main(int argc, char **argv)
{
	static struct world shared, alone;
	size_t bytes;

	bodies = argc > 1 ? atoi(argv[1]) : bodies;
	steps = argc > 2 ? atoi(argv[2]) : steps;
	bytes = bodies * sizeof(struct body);
	squares_each = 32 * bodies;
	stache_init(NULL);
	shared.bodies = share(&shared.bodies, bytes);
	shared.squares = share(&shared.squares, NODES * squares_each * sizeof(struct square));
	alone.bodies = malloc(bytes);
	alone.squares = malloc(squares_each * sizeof(struct square));
	fill(alone.bodies);
	if (!ME)
		fill(shared.bodies);
	TPPI_barrier();
	is_shared = 1;
	run(&shared, ME, first_of(ME, bodies), first_of(ME + 1, bodies));
	is_shared = 0;
	run(&alone, 0, 0, bodies);
	return compare(shared.bodies, alone.bodies, bytes);
}
