# SPDX-License-Identifier: GPL-2.0
# Xenuma: elastic NUMA for Xen. 'make help' lists the targets; 'make demo' and 'make test' do all set-up themselves.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
ENTER := lab/enter

TARGETS := help setup build demo test unit e2e e2e-debug guest-debug soak soak-debug bench bench-dsm bench-span count-dsm bounce \
	demo-dsm demo-span report check mutants explore series shell clean distclean
.PHONY: $(TARGETS)

# What is mistyped is told before anything is made: a goal (a folder's name, too), a variable, a value.
$(foreach goal,$(filter-out $(TARGETS),$(MAKECMDGOALS)),$(error no such target: $(goal); 'make help' lists them))

VARIABLES := TESTS UNIT_TESTS DEBUG_TESTS SOAK_TESTS SEED OPS FROM TO SOAK_GUEST KEEP_GOING STEPS BENCH_DSM BENCH_SPAN BOUNCE \
	MUTANTS EXPLORE
# make's own, those of any makefile, and those that lab/enter hands on. Of XENUMA_... any that something here reads.
OTHERS_VARIABLES := MAKE MAKEFLAGS MFLAGS SHELL V CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS TERM COLUMNS LINES CI NO_COLOR \
	PYTEST_ADDOPTS PIP_INDEX_URL
is-read = $(if $(filter XENUMA_%,$(1)),$(shell grep -rlwF --exclude-dir=__pycache__ -- '$(1)' lab benchmarks tests toolstack | head -n 1))
known = $(or $(filter $(VARIABLES) $(OTHERS_VARIABLES),$(1)),$(call is-read,$(1)))
# Which goals read it. STEPS is read by each that builds.
READERS_OF_TESTS := test
READERS_OF_UNIT_TESTS := unit
READERS_OF_DEBUG_TESTS := e2e-debug
READERS_OF_SOAK_TESTS := soak
$(foreach v,SEED OPS FROM TO SOAK_GUEST KEEP_GOING,$(eval READERS_OF_$(v) := soak soak-debug))
READERS_OF_BENCH_DSM := bench-dsm
READERS_OF_BENCH_SPAN := bench-span
READERS_OF_BOUNCE := bounce
READERS_OF_MUTANTS := mutants
READERS_OF_EXPLORE := explore
passed-over = $(if $(READERS_OF_$(1)),$(if $(filter $(READERS_OF_$(1)),$(MAKECMDGOALS)),,$(1)))
# Not below another make, which hands on what it was given itself.
ifeq ($(MAKELEVEL),0)
given := $(foreach v,$(filter-out -%,$(.VARIABLES)),$(if $(filter command%,$(firstword $(origin $(v)))),$(v)))
$(foreach v,$(given),$(if $(call known,$(v)),,\
	$(error no such variable: $(v); there are $(VARIABLES), and XENUMA_... ('make help'))))
$(foreach v,$(given),$(if $(call passed-over,$(v)),\
	$(error $(v) is for: $(READERS_OF_$(v)); not for: $(or $(MAKECMDGOALS),help)$(if $(filter %TESTS,$(v)),; each has a variable of its own for tests))))
endif

help: ## this list
	@echo "make TARGET, on Debian 12 or 13, as root or as a user with sudo:"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-11s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Variables: XENUMA_CACHE (default ~/.cache/xenuma, for all clones), XENUMA_MIRROR (a Debian mirror), TESTS (for make test),"
	@echo "XENUMA_LANES (racks side by side in make test: a number, by default 1; auto: 2 where there are 2 CPUs and 14 GB of free memory)."

# Values that would be refused after the build. What is left to the programs has options in it.
rest-of = $(if $(2),$(call rest-of,$(subst $(firstword $(2)),,$(1)),$(wordlist 2,99,$(2))),$(1))
no-number = $(strip $(call rest-of,$(1),0 1 2 3 4 5 6 7 8 9) $(word 2,$(1)))
bare = $(subst ',,$(subst ",,$(1)))
missing = $(if $(filter-out -%,$(1)),$(if $(wildcard $(firstword $(subst ::, ,$(call bare,$(1))))),,$(1)))
no-hex = $(strip $(if $(2),$(call rest-of,$(1),0 1 2 3 4 5 6 7 8 9 a b c d e f A B C D E F),0x))
check-seed = $(if $(filter 0x%,$(SEED)),$(if $(call no-hex,$(SEED:0x%=%),$(SEED:0x%=%)),\
	$(error SEED=$(SEED): want a number, 0 or more, or 0x and hexadecimal digits)),$(call check-number,SEED))
check-number = $(if $(call no-number,$($(1))),$(error $(1)=$($(1)): want a number, 0 or more))
check-tests = $(foreach t,$(firstword $($(1))) $(filter tests/%,$($(1))),$(if $(call missing,$(t)),$(error $(1): no such file or folder: $(t))))
check-words = $(if $(filter -%,$($(1))),,$(foreach w,$(filter-out $(2),$($(1))),$(error $(1): no such part: $(w); there are $(2))))
check-one = $(if $(filter-out $(2),$($(1))),$(error $(1)=$($(1)): want one of: $(2)))
check-order = $(if $(shell [ 1 -le $(1) ] && [ $(1) -le $(2) ] && [ $(2) -le $(3) ] && echo fine),,\
	$(error operations $(1) to $(2): want 1 <= FROM <= TO <= OPS, which is $(3)))
goals = $(filter $(1),$(MAKECMDGOALS))

ifneq ($(call goals,soak soak-debug),)
$(check-seed)
$(foreach v,OPS FROM TO,$(call check-number,$(v)))
$(call check-one,SOAK_GUEST,guest2 guest4)
$(call check-one,KEEP_GOING,1)
$(if $(filter command%,$(firstword $(origin SOAK_TESTS))),$(if $(SEED)$(OPS)$(FROM)$(TO)$(SOAK_GUEST)$(KEEP_GOING),\
	$(error SOAK_TESTS is for the tests, and the others for the random soak: one or the other)))
$(if $(FROM)$(TO),$(if $(SEED),,$(error FROM, TO: of which plan? SEED=N says)))
$(if $(FROM)$(TO)$(OPS),$(call check-order,$(or $(FROM),1),$(or $(TO),$(OPS),300),$(or $(OPS),300)))
endif
$(if $(call goals,soak),$(call check-tests,SOAK_TESTS))
$(if $(call goals,e2e-debug),$(call check-tests,DEBUG_TESTS))
$(if $(call goals,unit),$(call check-tests,UNIT_TESTS))
$(if $(call goals,test),$(call check-tests,TESTS))
ifneq ($(call goals,test unit e2e e2e-debug guest-debug soak),)
$(if $(filter-out auto,$(XENUMA_LANES)),$(if $(call no-number,$(XENUMA_LANES))$(filter 0%,$(XENUMA_LANES)),\
	$(error XENUMA_LANES=$(XENUMA_LANES): want a number of lanes, or auto)))
endif
$(if $(call goals,bench-dsm),$(call check-words,BENCH_DSM,rtt swap node switches detach rdma))
$(if $(call goals,bench-span),$(call check-words,BENCH_SPAN,kernels kv ownership calls))

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
# instead (benchmarks/soak): OPS operations, 300 without it, of which FROM to TO are done; SOAK_GUEST: guest2 or guest4; KEEP_GOING=1:
# after a violation, with a new guest.
# And the unit tests that are marked so.
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

bench: build ## the measurements, an hour and a quarter; results in build/results
	@$(ENTER) python3 -m lab.pipeline.build xen-stock linux-stock
	@$(ENTER) python3 -m benchmarks

# BENCH_DSM: parts, rtt, swap, node, switches, detach, rdma; all without it.
bench-dsm: build ## memory from another machine: two hosts; build/results/dsm.json (BENCH_DSM chooses)
	@$(ENTER) python3 -m benchmarks.dsm $(BENCH_DSM)

# BENCH_SPAN: parts, kernels, kv, ownership, calls, all without it; --cpus=2, --rounds=N.
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
	@$(if $(filter-out toolstack dsmd soak bounce,$(firstword $(MUTANTS) libgomp)),$(ENTER) python3 -m lab.pipeline.build libgomp-stock)
	@$(ENTER) python3 -m lab.pipeline.mutants $(MUTANTS)

# EXPLORE: words in the names of worlds and mutants; or, without, --seed N, --walks N.
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
