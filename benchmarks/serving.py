"""Steps a second of a served environment over many connections, beside those of this process alone.

python benchmarks/serving.py [connections]    # needs the extra openenv
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from openenv import GenericEnvClient

from hunch.ext import openenv
from hunch.ext.turns import Turns
from told import told

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
        alone = steps_alone(steps)
        print(f"{connections} connections: {steps / seconds:,.0f} steps/s, {1e3 * spent / steps:.2f} CPU ms")
        print("a step, clients included (they run in the same process)")
        print(f"without a server: {alone:,.0f} steps/s, {alone * seconds / steps:.1f} times as many")
        list(pool.map(lambda client: client.close(), clients))


def steps_alone(steps: int) -> float:
    """Return the steps a second of the same environment in this process."""
    turns = Turns(ENV, max_steps=50)
    turns.reset(seed=0)
    start = time.perf_counter()
    for number in range(steps):
        if turns.step("look").done:
            turns.reset(seed=number)
    return steps / (time.perf_counter() - start)


if __name__ == "__main__":
    told(__doc__)
    main()
