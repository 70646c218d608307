"""Differentially private release: admission, draw, and the crowd threshold.

``crowd`` has the exact certificate δ* of sampling with a crowd threshold and ``crowd_profile`` its whole privacy
profile; ``scheme_cells`` and ``cell_places`` count the cells that are admitted, ``scheme_choice`` chooses schemes by
the exponential mechanism (McSherry and Talwar 2007), ``proposals`` proposes them from public facts, ``exponential``
draws a generalization (Fouad 2012 eq. 5.4), ``groups`` says what is left for several rows, and ``audit`` what an
experiment can refute.
"""
