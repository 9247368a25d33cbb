// SPDX-License-Identifier: MIT
/*
 * Tasks that make tasks: ways to place queens on a board so that none attacks another. A
 * task is a board with queens in its first rows. It is counted to the end if few rows are
 * left, else each way to place one more is a task, which any node takes from a stack.
 *
 *	hamlyn-run -n 4 queue [QUEENS]
 */
#include "example.h"

#define MOST_TASKS	4096
#define SPLIT		3	/* rows that are filled by tasks */

struct task {
	unsigned int row, columns, left, right;
};

/**
 * struct stack - shared by all; the lock is known by its address
 * @number: tasks that nobody has taken
 * @working: nodes that may add some
 * @found: ways
 */
struct stack {
	unsigned int number, working;
	unsigned long found;
	struct task tasks[MOST_TASKS];
};

static unsigned int queens = 8;

static struct task place(const struct task *task, unsigned int column)
{
	return (struct task){
		.row = task->row + 1,
		.columns = task->columns | column,
		.left = (task->left | column) << 1,
		.right = (task->right | column) >> 1,
	};
}

static unsigned int free_columns(const struct task *task)
{
	return ((1U << queens) - 1) & ~(task->columns | task->left | task->right);
}

static unsigned long count(const struct task *task)
{
	unsigned long ways = 0;

	if (task->row == queens)
		return 1;
	for (unsigned int left = free_columns(task); left; left &= left - 1) {
		struct task next = place(task, left & -left);

		ways += count(&next);
	}
	return ways;
}

static void push_all(struct stack *stack, const struct task *task)
{
	for (unsigned int left = free_columns(task); left; left &= left - 1) {
		if (stack->number == MOST_TASKS)
			abort();
		stack->tasks[stack->number++] = place(task, left & -left);
	}
}

/* False if there is none just now; @over if there will be none. */
static int take(struct stack *stack, struct task *task, int *over)
{
	int taken = 0;

	stache_lock(stack);
	if (stack->number) {
		*task = stack->tasks[--stack->number];
		stack->working++;
		taken = 1;
	}
	*over = !taken && !stack->working;
	stache_unlock(stack);
	return taken;
}

static void work(struct stack *stack)
{
	struct task task;
	int over;

	do {
		unsigned long ways = 0;

		if (!take(stack, &task, &over))
			continue;
		if (task.row >= SPLIT)
			ways = count(&task);
		stache_lock(stack);
		if (task.row < SPLIT)
			push_all(stack, &task);
		stack->found += ways;
		stack->working--;
		stache_unlock(stack);
	} while (!over);
}

int main(int argc, char **argv)
{
	static const struct task empty;
	static struct stack *stack;
	unsigned long alone;

	queens = argc > 1 ? (unsigned int)atoi(argv[1]) : queens;
	stache_init(NULL);
	stack = share(&stack, sizeof(*stack));
	if (!ME)
		push_all(stack, &empty);
	TPPI_barrier();
	work(stack);
	alone = count(&empty);
	return compare(&stack->found, &alone, sizeof(alone));
}
