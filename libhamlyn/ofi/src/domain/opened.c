// SPDX-License-Identifier: MIT
#include "domain/opened.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hf_fabric *fabrics;
static struct hf_domain *domains;

void hf_opened_add_fabric(struct hf_fabric *fabric)
{
	struct hf_fabric **at = &fabrics;

	pthread_mutex_lock(&lock);
	while (*at)
		at = &(*at)->next;
	*at = fabric;
	pthread_mutex_unlock(&lock);
}

void hf_opened_remove_fabric(struct hf_fabric *fabric)
{
	struct hf_fabric **at = &fabrics;

	pthread_mutex_lock(&lock);
	while (*at != fabric)
		at = &(*at)->next;
	*at = fabric->next;
	pthread_mutex_unlock(&lock);
}

void hf_opened_add_domain(struct hf_domain *domain)
{
	struct hf_domain **at = &domains;

	pthread_mutex_lock(&lock);
	while (*at)
		at = &(*at)->next;
	*at = domain;
	pthread_mutex_unlock(&lock);
}

void hf_opened_remove_domain(struct hf_domain *domain)
{
	struct hf_domain **at = &domains;

	pthread_mutex_lock(&lock);
	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	pthread_mutex_unlock(&lock);
}

struct hf_fabric *hf_opened_fabric(const struct fid_fabric *fabric)
{
	struct hf_fabric *f;

	pthread_mutex_lock(&lock);
	for (f = fabrics; f && fabric && &f->fid != fabric; f = f->next)
		;
	pthread_mutex_unlock(&lock);
	return f;
}

struct hf_domain *hf_opened_domain(const struct fid_domain *domain, const char *name,
				   const struct fid_fabric *fabric)
{
	struct hf_domain *d;

	pthread_mutex_lock(&lock);
	for (d = domains; d; d = d->next)
		if ((!domain || &d->fid == domain) && (!name || !strcmp(d->name, name)) &&
		    (!fabric || &d->fabric->fid == fabric))
			break;
	pthread_mutex_unlock(&lock);
	return d;
}
