"""Where script archives are kept: in memory for tests, in the home otherwise.

``inspecting`` says what an archive may hold, ``unpacking`` writes it out, ``room`` says how much
there may be of all; both stores use them. ``packing`` makes archives of what users name.
"""
