"""A client that can be used, workers that see the files, tasks."""

from pathlib import Path

from ..store import StoreError
from ._files import sees

# After errors such as those of a busy file system; lost workers are Dask's own matter.
RETRIES = 2


def running(client):
    """The client, or the current one, if it can be used."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "Working on a cluster needs Dask: pip install 'overcover[dask]'."
        ) from error
    if client is None:
        try:
            client = Client.current()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client. Start one, client = distributed.Client() for "
                "this computer alone, or give one as client=..."
            ) from error
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(
            f"client={client!r} must be a distributed.Client that is not asynchronous, "
            "such as Client('tcp://scheduler:8786')."
        )
    if client.status in ("closing", "closed"):
        raise ValueError(
            f"client={client!r} is {client.status}. Start another; a fit goes on where "
            "it stopped."
        )
    return client


def check_shared(client, folder):
    """Refuse a folder that some worker cannot see."""
    workers = client.run(sees, str(folder))
    blind = sorted(worker for worker, can_see in workers.items() if not can_see)
    if blind:
        raise StoreError(
            f"{Path(folder).parent} cannot be read and written by {len(blind)} of "
            f"{len(workers)} workers ({', '.join(blind[:3])}). Choose a path on a file "
            "system that all of them share, under the same name."
        )


def submit(client, function, *args):
    # Not pure: a task of an earlier fit with equal arguments must not stand for it.
    return client.submit(function, *args, pure=False, retries=RETRIES)


def call(client, function, *args):
    return submit(client, function, *args).result()
