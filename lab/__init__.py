# SPDX-License-Identifier: GPL-2.0
"""The rack in a box: real Xen hosts in QEMU, driven from Python or by the command lab/rack.

    from lab.description import RackDescription
    from lab.rack import Rack

    with Rack.boot(RackDescription.load("one-host")) as rack:
        host = rack.host()
        print(host.run(["xl", "info", "-n"]).out)
        guest = host.start_guest(Path("configs/guest2.cfg"))
        print(guest.run(["numactl", "-H"]).out)

Modules: description (what a rack is), rack, host, guest (what runs), qemu, qmp, console, ssh, event_loop (how), meter (NUMA
counters), images (what is booted), pipeline (how it is built), supervisor and cli (lab/rack).
"""
