"""Tests of the guest: python3 -m unittest discover -s entrypoint/guest_tests -t entrypoint

With GUEST_UNDER set to the beginning of a command, such as `podman run --rm -i ... image`, every
guest is started by it.
"""
