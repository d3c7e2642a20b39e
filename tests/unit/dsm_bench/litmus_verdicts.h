/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What dsm_litmus has its threads do, and what it says of whatever they can have seen; it is included before main().
 *
 * A line for each shape and variant: its name, that of the variant, and what each thread did, "store-x-1".  Then one
 * for each that can be seen: the values, as they are stored in this turn, and whether it is said to be forbidden; -1 is
 * what this turn has not stored: what the one before has, half of something, or nothing of that.
 */
#define VERDICT_TURNS 2u

static char did_what[64];
static uint64_t base_before;	/* of the turn before */

static void did(const char *what, const void *cell, bool stores, uint64_t value)
{
	const char *separator = *did_what ? "," : "";
	size_t end = strlen(did_what);

	if (!cell)
		snprintf(did_what + end, sizeof(did_what) - end, "%s%s", separator, what);
	else if (!stores)
		snprintf(did_what + end, sizeof(did_what) - end, "%s%s-%c", separator, what,
			 (uint8_t *)cell >= run.x && (uint8_t *)cell < run.x + (PAGES + 1) * PAGE ? 'x' : 'y');
	else
		snprintf(did_what + end, sizeof(did_what) - end, "%s%s-%c-%u", separator, what,
			 (uint8_t *)cell >= run.x && (uint8_t *)cell < run.x + (PAGES + 1) * PAGE ? 'x' : 'y',
			 value_of(value));
}

static void verdicts_of(void)
{
	const struct description *shape = &shapes[run.shape];
	uint64_t unit = run.variant == SPLIT_LOCK ? BOTH : 1;
	/* What the turn before has stored is what a copy that is too old has. */
	uint64_t raw[] = { 0, (run.base + 1) * unit, (run.base + 2) * unit, (base_before + 1) * unit, (base_before + 2) * unit,
			   (run.base + 3) * unit, (run.base + 1) << 32, run.base + 1 };
	unsigned int n = 2, total, kinds = run.variant == SPLIT_LOCK ? 8 : 6;

	for (unsigned int thread = 0; thread < shape->threads; thread++) {
		uint64_t *value = threads[number_of_cpu(1, thread)].seen[0].value;

		*did_what = 0;
		switch (run.variant) {
		case PLAIN:	 body(run.shape, thread, PLAIN, run.x, run.y, run.base, value); break;
		case FENCE:	 body(run.shape, thread, FENCE, run.x, run.y, run.base, value); break;
		case LOCK:	 body(run.shape, thread, LOCK, run.x, run.y, run.base, value); break;
		case SPLIT_LOCK: body(run.shape, thread, SPLIT_LOCK, run.x, run.y, run.base, value); break;
		case NT:	 body(run.shape, thread, NT, run.x, run.y, run.base, value); break;
		case VARIANTS:	 break;
		}
		printf(" %s", *did_what ? did_what : "-");
		n += shape->registers[thread];
	}
	puts("");
	/* With four loads one of the many that nobody can have stored is enough. */
	if (n > 4)
		kinds = 4;
	total = 1;
	for (unsigned int i = 0; i < n; i++)
		total *= kinds;
	for (unsigned int number = 0; number < total; number++) {
		unsigned int kind[MOST_THREADS + 2], left = number, i = 0;
		struct outcome outcome = { 0 };
		int found;

		for (unsigned int k = n; k--; left /= kinds)
			kind[k] = left % kinds;
		for (unsigned int thread = 0; thread < shape->threads; thread++)
			for (unsigned int r = 0; r < shape->registers[thread]; r++)
				threads[number_of_cpu(1, thread)].seen[0].value[r] = raw[kind[i++]];
		*(uint64_t *)cell_of(run.x, 0, 1) = raw[kind[i++]];
		*(uint64_t *)cell_of(run.y, 0, 1) = raw[kind[i++]];
		found = outcome_of(0, 1, &outcome);
		for (unsigned int k = 0; k < n; k++)
			printf("%d ", kind[k] < VALUES ? (int)kind[k] : -1);
		printf("%d\n", found < 0 || (is_weak(&outcome) && !weak_is_allowed(run.shape, run.variant)));
	}
}

/*
 * What is counted of 16 slots of mp, by two teams.  By the bits of a slot's number: threads do not overlap in it; the
 * first team waits; the second one does; a thread of the first one has left it out.  Of each three slots the first
 * team has seen a=0 b=0, a=0 b=1 and a=1 b=1, and the second one what the first one sees in the next.
 */
static void print_look(void)
{
	static const struct options options = { .rounds = 1000, .hosts = { [1] = 1, [3] = 1 } };
	static const uint64_t seen[][2] = { { 0, 0 }, { 0, 1 }, { 1, 1 } };

	run.options = &options;
	run.shape = MP;
	run.variant = PLAIN;
	run.teams = 2;
	run.slots = 16;
	memset(&run.tally, 0, sizeof(run.tally));
	for (unsigned int slot = 0; slot < run.slots; slot++)
		for (unsigned int team = 0; team < run.teams; team++) {
			struct seen *one = &threads[2 * team].seen[slot], *two = &threads[2 * team + 1].seen[slot];
			const uint64_t *value = seen[(slot + team) % 3];

			*(uint64_t *)cell_of(run.x, slot, team) = *(uint64_t *)cell_of(run.y, slot, team) = run.base + 1;
			*one = (struct seen){ .begun = 10, .ended = slot & (2u << team) ? 30 : 20 };
			*two = (struct seen){ .begun = slot & 1 ? 31 : 15, .ended = 40, .value = {
				value[0] ? run.base + 1 : 0, value[1] ? run.base + 1 : 0 } };
			if (!(slot & (2u << team)))
				two->ended = two->begun + 1;
			if (slot & 8 && !team)
				two->begun = 0;
		}
	printf("look %d", look());
	printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, run.tally.rounds, run.tally.overlapped,
	       run.tally.raced, run.tally.raced_slots, run.tally.impossible);
	for (unsigned int number = 0; number < VALUES * VALUES; number++)
		printf(" %" PRIu64, run.tally.outcomes[number]);
	puts("");
}

/* Offsets of cells, and whether what threads did at some times counts as overlapping, and as raced. */
static void print_verdicts(void)
{
	static const uint64_t times[][2] = { { 10, 20 }, { 30, 40 }, { 15, 35 }, { 20, 35 }, { 41, 80 } };
	static const struct options options = { .rounds = 1000, .hosts = { [5] = 1, [7] = 1 } };

	run.options = &options;
	run.x = pages_on(-1);
	run.y = pages_on(-1);
	threads = aligned_alloc(PAGE, MOST_CPUS * sizeof(*threads));
	for (run.variant = PLAIN; run.variant < VARIANTS; run.variant++)
		for (run.teams = MOST_TEAMS; run.teams; run.teams--) {
			printf("cells %s", variant_names[run.variant]);
			run.tally.rounds = 0;
			plan();
			for (unsigned int slot = 0; slot < run.slots; slot++)
				for (unsigned int team = 0; team < run.teams; team++)
					printf("%c%zd", team ? ',' : ' ', (uint8_t *)cell_of(run.x, slot, team) - run.x);
			puts("");
		}
	/* What follows is of the second of two. */
	run.teams = 2;
	run.base = 0;
	run.slow = 15;
	run.shape = IRIW;
	for (unsigned int number = 0; number < 5 * 5 * 5 * 5; number++) {
		unsigned int left = number;

		memset(&run.tally, 0, sizeof(run.tally));
		printf("times");
		for (unsigned int thread = 0; thread < 4; thread++, left /= 5) {
			threads[number_of_cpu(1, thread)].seen[0].begun = times[left % 5][0];
			threads[number_of_cpu(1, thread)].seen[0].ended = times[left % 5][1];
			printf(" %" PRIu64 " %" PRIu64, times[left % 5][0], times[left % 5][1]);
		}
		count_times(0, 1);
		printf(" %" PRIu64 " %" PRIu64 "\n", run.tally.overlapped, run.tally.raced);
	}
	/* CPUs that there is no team for. */
	run.teams = 1;
	run.variant = PLAIN;
	for (unsigned int number = 4; number < 8; number++)
		turn_of(number);
	printf("rest %s\n", *did_what ? did_what : "-");
	print_look();
	run.teams = 2;
	for (unsigned int turn = 0; turn < VERDICT_TURNS; turn++) {
		base_before = run.base;
		plan();
	}
	for (run.shape = 0; run.shape < SHAPES; run.shape++)
		for (run.variant = PLAIN; run.variant < VARIANTS; run.variant++) {
			printf("shape %s %s", shapes[run.shape].name, variant_names[run.variant]);
			verdicts_of();
		}
}
