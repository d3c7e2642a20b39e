# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What lab/bootstrap and lab/enter share. The sourcing script sets $repo.

cache=${XENUMA_CACHE:-$HOME/.cache/xenuma}
[[ $cache == /* ]] || cache=$PWD/$cache

# A root is named by what decides its content: the lists and the script that makes it.
sandbox_key() {
  # shellcheck disable=SC2154
  { cat -- "$repo/lab/sandbox.packages" "$repo/lab/sandbox.requirements"; echo "sandbox-1 $(id -u):$(id -g)"; } | sha256sum | cut -c1-12
}

target_key() {
  { cat -- "$repo/lab/target.packages"; echo target-2; } | sha256sum | cut -c1-12
}
