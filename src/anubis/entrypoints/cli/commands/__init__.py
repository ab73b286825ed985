"""The commands: each fetches what its user asked for and hands it to ``rendering``.

One module per command or small family. A module is imported only when its command is called.
"""
