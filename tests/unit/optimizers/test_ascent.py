from clipup.optimizers import GradientAscent, HeavyBall


def test_plain_ascent_scales_the_gradient():
    assert GradientAscent(0.25).ascent([4.0, -8.0]).tolist() == [1.0, -2.0]


def test_the_heavy_ball_gathers_speed_as_polyak_wrote():
    ball = HeavyBall(step_size=2.0, momentum=0.5)
    # v = 0.5 v + 2 g: 2, then 1 + 2 = 3, then 1.5 - 4 = -2.5
    assert [ball.ascent([g])[0] for g in (1.0, 1.0, -2.0)] == [2.0, 3.0, -2.5]


def test_without_momentum_the_ball_is_plain_ascent():
    ball, plain = HeavyBall(0.3, momentum=0.0), GradientAscent(0.3)
    for gradient in ([1.0, 2.0], [-3.0, 0.5]):
        assert ball.ascent(gradient).tolist() == plain.ascent(gradient).tolist()
