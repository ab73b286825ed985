"""Datasets in a folder that all processes of this machine share.

::

    objects/file-<sha256>/<file name>    the bytes of a file, once for every name it goes by
    objects/tree-<sha256>/content/       the files of a directory, or of an unpacked archive
    references/<key>.json                which object was asked for; its time is the last use
    pins/<run>/<key>                     what a run uses: the name of the object
    partial/<key>/                       a transfer that has not ended, with its journal
    locks/<key>, locks/index             flocks: who transfers; who changes references and objects
    removed/                             what is being deleted

A file of ``references`` is written last and durably: without it there is no dataset, whatever else
is there. An object that no reference and no pin names is rubbish, and goes with the next change.

``cache`` answers the port; it asks ``catalog`` what is here, ``fetching`` for what is not.
"""

from anubis.adapters.dataset_cache.directory.cache import DirectoryDatasetCache

__all__ = ["DirectoryDatasetCache"]
