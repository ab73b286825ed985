"""Make some progress, then run out of luck."""

import sys
import time


def main():
    for percent in (10, 20, 30, 40):
        print(f"progress: {percent}%", flush=True)
        time.sleep(0.05)
    print("checkpoint is unreadable: expected 4096 bytes, got 17", file=sys.stderr, flush=True)
    sys.exit(3)


if __name__ == "__main__":
    main()
