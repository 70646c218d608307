"""Decisions: all that is known of one variant of a policy's decision is in one module.

``decision`` says what every variant tells: the search or rule it makes of policy and hierarchies, its sentences, and
what the release contract holds it against. ``searched`` and ``cells`` hold what several variants have in common, and
``registry`` finds the variant of a policy. A new one is a module here and its line there; what a person writes for it,
its keys and which other keys it cannot take, is in :mod:`privrisk_spark.policy.decisions` and
:mod:`privrisk_spark.policy.rules.decisions`.

=================================  =====================================================  ==============================
problem of the policy              module                                                 source
=================================  =====================================================  ==============================
``min-risk``                       ``least_risk``                                         Fouad 2012 eq. 4.2
``max-utility``                    ``greatest_utility``                                   eq. 4.1
``min-risk-minus-utility``         ``least_penalized``                                    eq. 4.3
``max-aggregate``                  ``aggregate``                                          eq. 5.1
``disclose-per-record``            ``cells_per_record``                                   Lebanon et al. 2006, Δ2
``disclose-in-all``                ``cells_in_all``                                       Δ1
``disclose-per-attribute``         ``cells_per_attribute``                                Δ3
``rules``                          ``listed_rules``                                       Fouad 2012, Algorithm 1
=================================  =====================================================  ==============================
"""
