"""Steps a second of a served environment over many connections (extra openenv)."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from openenv import GenericEnvClient

from hunch.ext import openenv
from hunch.ext.turns import Turns

ENV, CONNECTIONS, STEPS = "hunch/Household-Pick-v0", 64, 40


def main() -> None:
    connections = int(sys.argv[1]) if len(sys.argv) > 1 else CONNECTIONS
    socket = openenv.listen("127.0.0.1", 0)
    server = openenv.server(Turns(ENV, max_steps=50), openenv.Limits(sessions=connections))
    threading.Thread(target=lambda: server.run(sockets=[socket]), daemon=True).start()
    url = f"http://127.0.0.1:{socket.getsockname()[1]}"
    while not server.started:
        time.sleep(0.01)
    clients = [GenericEnvClient(url).sync() for _ in range(connections)]
    with ThreadPoolExecutor(connections) as pool:
        for seed, client in enumerate(clients):  # each starts a process, which takes longer than all steps
            client.reset(seed=seed)

        def play(client: GenericEnvClient) -> None:
            for _ in range(STEPS):
                client.step({"text": "look"})

        start, cpu = time.perf_counter(), time.process_time()
        list(pool.map(play, clients))
        seconds, spent = time.perf_counter() - start, time.process_time() - cpu
        steps = connections * STEPS
        print(f"{connections} connections: {steps / seconds:,.0f} steps/s, {1e3 * spent / steps:.2f} CPU ms")
        print("a step, clients included (they run in the same process)")
        list(pool.map(lambda client: client.close(), clients))


if __name__ == "__main__":
    main()
