# SPDX-License-Identifier: GPL-2.0
# Xenuma: elastic NUMA for Xen. 'make help' lists the targets; 'make demo' and 'make test' do all set-up themselves.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
ENTER := lab/enter

.PHONY: help setup build demo test unit e2e e2e-debug guest-debug soak soak-debug bench report check mutants explore bench-dsm bench-span count-dsm bounce demo-dsm demo-span series shell clean distclean

help: ## this list
	@echo "make TARGET, on Debian 12 or 13, as root or as a user with sudo:"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-11s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Variables: XENUMA_CACHE (default ~/.cache/xenuma), XENUMA_MIRROR (a Debian mirror), TESTS (for make test),"
	@echo "XENUMA_LANES (racks side by side in make test: a number, by default 1; auto: 2 where there are 2 CPUs and 14 GB of free memory)."

# Only these need the memory of a rack; the others only warn of too little.
demo test e2e e2e-debug guest-debug soak soak-debug bench bench-dsm bench-span demo-dsm demo-span: BOOTS := --boots

setup: ## check the host, make the sandbox, fetch the sources
	@lab/bootstrap $(BOOTS)
	@$(ENTER) --root python3 -m lab.pipeline.sources

build: setup ## build the emulator, Xen, its tools, Linux, libgomp, the meter, the images
	@$(ENTER) python3 -m lab.pipeline.build $(STEPS)

demo: build ## a guest gets a NUMA node and loses it again, while an OpenMP program runs
	@$(ENTER) python3 -m benchmarks.demo

# What tests measure, in few rounds and beside other work, is kept apart from what bench and demo have measured.
IN_TESTS := XENUMA_RESULTS=$(CURDIR)/build/results-test

TESTS ?= tests/unit tests/guest tests/e2e
test: build ## all tests but new and long ones, which soak runs; the last line counts them
	@$(IN_TESTS) $(ENTER) python3 -m lab.pipeline.test $(TESTS)

UNIT_TESTS ?= tests/unit
unit: setup ## the tests that need no machine (UNIT_TESTS chooses)
	@$(ENTER) python3 -m lab.pipeline.build libgomp libgomp-stock
	@$(ENTER) python3 -m lab.pipeline.test $(UNIT_TESTS)

e2e: build ## the tests in the lab
	@$(IN_TESTS) $(ENTER) python3 -m lab.pipeline.test tests/e2e

# Assertions, lockdep and heap checks make all of it several times slower.
DEBUG_TESTS ?= tests/e2e
DEBUG_RACK := XENUMA_QEMU=$(CURDIR)/build/artifacts/qemu/qemu-system-x86_64 \
	XENUMA_XEN=$(CURDIR)/build/artifacts/xen-debug/xen.elf \
	XENUMA_KERNEL=$(CURDIR)/build/artifacts/linux-lockdep/vmlinuz \
	XENUMA_DOM0_IMAGE=$(CURDIR)/build/artifacts/images-lockdep/dom0.img \
	XENUMA_SSH_KEY=$(CURDIR)/build/artifacts/images-lockdep/ssh/id_ed25519 \
	XENUMA_METER=$(CURDIR)/build/artifacts/meter/meter.so \
	XENUMA_RESULTS=$(CURDIR)/build/results-debug
e2e-debug: setup ## the tests in the lab, with the checking variants of Xen and Linux (DEBUG_TESTS chooses)
	@$(ENTER) python3 -m lab.pipeline.build xen-debug images-lockdep qemu meter libgomp libgomp-stock
	@$(DEBUG_RACK) $(ENTER) python3 -m lab.pipeline.test $(DEBUG_TESTS)

guest-debug: setup ## the guest tests without Xen, with lockdep, the address sanitizer and preemption
	@$(ENTER) python3 -m lab.pipeline.build linux-kasan qemu
	@XENUMA_KERNEL=$(CURDIR)/build/artifacts/linux-kasan/vmlinuz XENUMA_GUEST_MEMORY_SCALE=2 \
	 $(ENTER) python3 -m lab.pipeline.test tests/guest

# What 'make test' does a few times, many times, and what is too new for it: an hour and more. With SEED or OPS the random soak
# instead (benchmarks/soak): OPS operations, 300 without it, of which FROM to TO are done; SOAK_GUEST: guest2 or guest4; KEEP_GOING=1.
# And the unit tests that are marked so. FROM and TO without SEED are refused: of which plan?
SOAK_TESTS ?= tests/e2e $(sort $(shell grep -rlE '^(pytestmark|@pytest).*mark\.(soak|fresh)|marks=.*mark\.(soak|fresh)|^from .* import rest_in_soak' tests/unit --include='test_*.py'))
SOAK_ARGUMENTS = $(if $(SEED),--seed $(SEED)) $(if $(OPS),--ops $(OPS)) $(if $(FROM),--from $(FROM)) $(if $(TO),--to $(TO)) \
	$(if $(SOAK_GUEST),--guest $(SOAK_GUEST)) $(if $(KEEP_GOING),--keep-going)
soak: build ## all end-to-end tests, the newest too, with more rounds, and the unit tests that are for it (SOAK_TESTS chooses); SEED=N OPS=N: random operations on a guest
ifneq ($(strip $(SEED)$(OPS)$(FROM)$(TO)$(SOAK_GUEST)$(KEEP_GOING)),)
	@$(ENTER) python3 -m benchmarks.soak $(SOAK_ARGUMENTS)
else
	@XENUMA_SOAK=1 $(IN_TESTS) $(ENTER) python3 -m lab.pipeline.test $(SOAK_TESTS)
endif

# The guest's kernel needs an eighth of its memory for the address sanitizer, and more for itself.
soak-debug: setup ## SEED=N OPS=N: the random soak with Xen's assertions, lockdep, and the address sanitizer in the guest
	@$(ENTER) python3 -m lab.pipeline.build xen-debug images-lockdep linux-kasan qemu meter libgomp libgomp-stock
	@$(DEBUG_RACK) $(ENTER) python3 -m benchmarks.soak $(SOAK_ARGUMENTS) --home 768 --kernel build/artifacts/linux-kasan/vmlinuz

bench: build ## the measurements, some hours; results in build/results
	@$(ENTER) python3 -m lab.pipeline.build xen-stock linux-stock
	@$(ENTER) python3 -m benchmarks

# BENCH_DSM: parts, rtt, swap, node, switches, detach, rdma; all without it.
bench-dsm: build ## memory from another machine: two hosts; build/results/dsm.json (BENCH_DSM chooses)
	@$(ENTER) python3 -m benchmarks.dsm $(BENCH_DSM)

# BENCH_SPAN: parts, kernels, kv, calls, all without it; --cpus=2, --rounds=N.
bench-span: build ## one Linux on two hosts: programs, a store, interrupts, hypercalls; build/results/span.json (BENCH_SPAN chooses)
	@$(ENTER) python3 -m benchmarks.span $(BENCH_SPAN)

count-dsm: setup ## what CONFIG_DSM costs other domains, in instructions; build/results/dsm-instructions.json
	@$(ENTER) python3 -m benchmarks.dsm_instructions

# BOUNCE: arguments of benchmarks.bounce, such as BOUNCE='--loops=2 --arguments=nohz_full=1'.
bounce: setup ## which pages of the guest's kernel bounce, played in one machine; build/results/bounce.json (BOUNCE chooses)
	@$(ENTER) python3 -m lab.pipeline.build linux qemu
	@$(ENTER) python3 -m benchmarks.bounce $(BOUNCE)

demo-dsm: build ## a guest gets a node whose memory is on another host, uses it, and loses it again
	@$(ENTER) python3 -m benchmarks.dsm_demo

demo-span: build ## one Linux on two hosts: memory and CPUs of the other come and go while an OpenMP program runs
	@$(ENTER) python3 -m benchmarks.span_demo

report: setup ## one HTML page of all results: build/results/report.html
	@$(ENTER) python3 -m benchmarks.report

check: setup ## style, types, static analysis
	@$(ENTER) python3 -m lab.pipeline.check

mutants: setup ## one wrong line at a time, in libgomp, or MUTANTS=toolstack, dsmd, soak or bounce: its unit tests notice each
	@$(ENTER) python3 -m lab.pipeline.build libgomp-stock
	@$(ENTER) python3 -m lab.pipeline.mutants $(MUTANTS)

# EXPLORE: words in the names of worlds and mutants, --seed N, --walks N.
explore: setup ## the DSM protocol: all states of small worlds, walks through larger ones, mutants (EXPLORE chooses)
	@$(ENTER) python3 -m benchmarks.explorer $(EXPLORE)

series: setup ## overlay and hooks as patch series for upstream: build/series
	@$(ENTER) python3 -m lab.pipeline.series

shell: setup ## a shell in the sandbox
	@$(ENTER) bash

clean: ## remove this tree's build folder, and with it what was measured (build/results)
	rm -rf build

distclean: clean ## remove the cache, too, which all clones share (as root, or with sudo)
	@lab/bootstrap --purge
