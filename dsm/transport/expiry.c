// SPDX-License-Identifier: GPL-2.0
/*
 * When certificates expire.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "expiry.h"

#define DAY	86400

int64_t dsm_expiry_of(const X509 *certificate)
{
	struct tm tm = { 0 };

	if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) != 1)
		return 0;
	return timegm(&tm);
}

static int64_t first_of(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

int64_t dsm_expiry_of_file(const char *file)
{
	FILE *stream = fopen(file, "re");
	X509 *certificate;
	int64_t first = 0;

	if (!stream)
		return 0;
	while ((certificate = PEM_read_X509(stream, NULL, NULL, NULL))) {
		first = first_of(first, dsm_expiry_of(certificate));
		X509_free(certificate);
	}
	ERR_clear_error();	/* the end of the file is one */
	fclose(stream);
	return first;
}

int64_t dsm_expiry_of_peer(const SSL *ssl)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	int64_t first = 0;
	int i;

	/* The last one is the CA's, of which our own file says it. */
	for (i = 0; chain && i + 1 < sk_X509_num(chain); i++)
		first = first_of(first, dsm_expiry_of(sk_X509_value(chain, i)));
	return first;
}

bool dsm_expiry_is_soon(int64_t expires, int64_t now, const char *what,
			char text[DSM_EXPIRY_TEXT])
{
	int64_t left = expires - now;
	time_t when = (time_t)expires;
	char date[32], in[32];
	struct tm tm;

	if (!expires || left > DSM_EXPIRY_SOON)
		return false;
	if (!gmtime_r(&when, &tm) || !strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm))
		snprintf(date, sizeof(date), "a day long ago");
	if (left < DAY)
		strcpy(in, "less than a day");
	else
		snprintf(in, sizeof(in), "%lld day%s", (long long)(left / DAY), left < 2 * DAY ? "" : "s");
	/* With it: beside a CA's there may be the next one. */
	if (left > 0)
		snprintf(text, DSM_EXPIRY_TEXT, "%.200s expires on %s, in %s: no connection can be made with it after that; make a new one (dsmd-host(8), CERTIFICATES THAT EXPIRE)",
			 what, date, in);
	else
		snprintf(text, DSM_EXPIRY_TEXT, "%.200s has expired, on %s: no connection can be made with it; make a new one (dsmd-host(8), CERTIFICATES THAT EXPIRE)",
			 what, date);
	return true;
}

static void look(struct dsm_expiry *expiry)
{
	const struct {
		const char *what, *file;
		int64_t expires;
	} each[] = {
		{ "this host's certificate", expiry->params->certificate_file, expiry->certificate },
		{ "the CA's certificate", expiry->params->ca_file, expiry->ca },
	};
	char what[192], text[DSM_EXPIRY_TEXT];
	unsigned int i;

	for (i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		snprintf(what, sizeof(what), "%s (%.150s)", each[i].what, each[i].file);
		if (dsm_expiry_is_soon(each[i].expires, time(NULL), what, text))
			expiry->warn(expiry->context, text);
	}
}

static void on_day(struct ev_loop *loop, ev_periodic *daily, int events)
{
	(void)loop;
	(void)events;
	look(daily->data);
}

void dsm_expiry_begin(struct dsm_expiry *expiry, const struct dsm_transport_params *params,
		      struct ev_loop *loop, double period,
		      void (*warn)(void *context, const char *text), void *context)
{
	*expiry = (struct dsm_expiry){
		.certificate = dsm_expiry_of_file(params->certificate_file),
		.ca = dsm_expiry_of_file(params->ca_file),
		.params = params, .warn = warn, .context = context,
	};
	look(expiry);
	/* By the clock of the machine: a certificate goes by it, too.  At this time of each day. */
	ev_periodic_init(&expiry->daily, on_day, ev_now(loop), period, NULL);
	expiry->daily.data = expiry;
	ev_periodic_start(loop, &expiry->daily);
}

void dsm_expiry_end(struct dsm_expiry *expiry, struct ev_loop *loop)
{
	ev_periodic_stop(loop, &expiry->daily);
}
