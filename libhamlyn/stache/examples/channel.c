// SPDX-License-Identifier: MIT
/*
 * A transposed matrix, whose parts are sent by hand: each node has rows of the matrix, and
 * needs columns. What goes from one node to another is known beforehand, so it takes no
 * faults, but a channel for each pair, straight into the memory where it is needed. The
 * result is in Stache's memory, where anybody finds it.
 *
 *	hamlyn-run -n 4 channel [ROWS [TIMES]]
 */
#include <unistd.h>

#include "example.h"

#define MOST_NODES	64

static int rows = 64, times = 3;
static int each;	/* rows of a node */

/* Parts for the others, one after the other, and those from them. */
static double *outgoing, *incoming;
static int sources[MOST_NODES];		/* channel to each node */
static _Atomic int channels[MOST_NODES];	/* from each; -1 until it has told */
static _Atomic int unsent;		/* parts for others that are not to be changed yet */

static size_t part_bytes(void)
{
	return (size_t)each * each * sizeof(double);
}

static double *part(double *parts, TPPI_NodeId node)
{
	return parts + (size_t)node * each * each;
}

/* ---- channels ---- */

static void on_channel(TPPI_NodeId src, int size)
{
	int channel = TPPI_recv_W();

	(void)size;
	if (!TPPI_set_channel_dst(src, channel, part(incoming, src), part_bytes(), NULL))
		abort();
	channels[src] = channel;
}

static void on_sent(TPPI_NodeId node, int channel)
{
	(void)node;
	(void)channel;
	unsent--;
}

static void open_channels(void)
{
	for (TPPI_NodeId node = 0; node < NODES; node++)
		channels[node] = -1;
	TPPI_barrier();
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		if (node == ME)
			continue;
		sources[node] = TPPI_set_channel_src(node, on_sent);
		TPPI_send_W(node, on_channel, sources[node]);
	}
}

static void exchange(void)
{
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		if (node == ME)
			continue;
		while (!TPPI_is_channel_dst_ready(node, sources[node]))
			usleep(10);
		unsent++;
		TPPI_channel_send(node, sources[node], part(outgoing, node), part_bytes());
	}
	memcpy(part(incoming, ME), part(outgoing, ME), part_bytes());
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		while (node != ME && (channels[node] < 0 ||
				      !TPPI_is_channel_ready(node, channels[node])))
			usleep(10);
	}
	while (unsent)
		usleep(10);
}

static void get_ready(void)
{
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		if (node != ME)
			TPPI_reset_channel(node, channels[node]);
	}
}

/* ---- the matrix ---- */

/* Rows of this node, cut into parts of columns, each of them transposed. */
static void cut(const double *own)
{
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		for (int i = 0; i < each; i++) {
			for (int j = 0; j < each; j++)
				part(outgoing, node)[i * each + j] =
					own[j * rows + (int)node * each + i];
		}
	}
}

static void paste(double *own)
{
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		for (int i = 0; i < each; i++)
			memcpy(&own[i * rows + (int)node * each], &part(incoming, node)[i * each],
			       each * sizeof(double));
	}
}

/* So that not the same is transposed again. */
static void change(double *own, int values)
{
	for (int i = 0; i < values; i++)
		own[i] = own[i] * 0.5 + i % 7;
}

static void fill(double *matrix)
{
	unsigned int seed = 1;

	for (int i = 0; i < rows * rows; i++)
		matrix[i] = chance(&seed);
}

static void transpose_alone(double *matrix)
{
	for (int i = 0; i < rows; i++) {
		for (int j = 0; j < i; j++) {
			double swap = matrix[i * rows + j];

			matrix[i * rows + j] = matrix[j * rows + i];
			matrix[j * rows + i] = swap;
		}
	}
}

static void alone(double *matrix)
{
	for (int i = 0; i < times; i++) {
		transpose_alone(matrix);
		for (int node = 0; node < rows / each; node++)
			change(matrix + (size_t)node * each * rows, each * rows);
	}
}

int main(int argc, char **argv)
{
	static double *result;
	double *matrix, *own;

	rows = argc > 1 ? atoi(argv[1]) : rows;
	times = argc > 2 ? atoi(argv[2]) : times;
	each = rows / NODES;
	rows = each * NODES;
	stache_init(NULL);
	result = share(&result, (size_t)rows * rows * sizeof(double));
	outgoing = malloc(NODES * part_bytes());
	incoming = malloc(NODES * part_bytes());
	matrix = malloc((size_t)rows * rows * sizeof(double));
	fill(matrix);
	own = matrix + (size_t)ME * each * rows;
	open_channels();
	for (int i = 0; i < times; i++) {
		cut(own);
		exchange();
		paste(own);
		change(own, each * rows);
		get_ready();
	}
	memcpy(result + (size_t)ME * each * rows, own, (size_t)each * rows * sizeof(double));
	fill(matrix);
	alone(matrix);
	return compare(result, matrix, (size_t)rows * rows * sizeof(double));
}
