"""What a declared epsilon amounts to over several trials: basic, advanced and optimal bounds.

Measures: nothing. It composes the epsilon that was declared for one trial, in nats.

Source: Dwork, Rothblum and Vadhan (advanced composition); Kairouz, Oh and Viswanath (optimal), see
`monitor.maths.composition`; USC section 2 for the mechanism that declares it.

Misleads: the account is as good as the declaration. Bits of disclosure are an average and no
epsilon.
"""
