// test_hpp.cpp -- the C++17 face (tern/tern.hpp): owners, operators, modules of the program's own, exceptions, loops.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tern/tern.hpp>

namespace nn = tern::nn;
using tern::Tensor;

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                           \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

template <class F> static tern::Error thrown(F f)
{
    try {
        f();
    } catch (const tern::Error &error) {
        CHECK(tern_last_status() == TERN_OK); // it is cleared
        return error;
    }
    CHECK(!"nothing was thrown");
    std::abort();
}

static void tensors()
{
    Tensor x({1.f, 2.f, 3.f, 4.f}, {2, 2}), y = x; // from a list: a vector of floats
    CHECK(x.dtype() == TERN_F32 && x.dim() == 2 && x.size(1) == 2 && x.numel() == 4);
    CHECK(y.get() == x.get() && x.shape()[0] == 2 && x.shape().size() == 2);
    CHECK((x + x * 2 - 1).sum().item() == 26);
    CHECK((2 / x).to_vector<float>()[3] == 0.5f && (1 - x).to_vector<float>()[0] == 0);
    CHECK((x > 2).sum().item() == 2 && (x == y).all().item() == 1);
    CHECK(x.sum(0).to_vector<float>()[1] == 6 && x.sum({0, 1}).item() == 10 &&
          x.sum(0, true).dim() == 2);
    CHECK(x.argmax(1).to_vector<std::int64_t>()[0] == 1 && x.argmax().item() == 3);
    CHECK(tern::matmul(x, x.t()).to_vector<float>()[0] == 5);
    CHECK(tern::full({3}, 7).dtype() == TERN_I64 && tern::full({3}, 0.5).sum().item() == 1.5);
    x += tern::ones({2, 2});
    CHECK(y.sum().item() == 14);
    CHECK(Tensor(std::vector<std::int64_t>{1, 2}).dtype() == TERN_I64);
    CHECK(!Tensor() && x);
    Tensor w = tern::ones({3}).requires_grad_();
    CHECK(!w.grad());
    (w * w).sum().backward();
    CHECK(w.grad().to_vector<float>()[2] == 2);
    {
        tern::NoGrad no_grad;
        CHECK(!(w * w).requires_grad());
    }
    CHECK((w * w).requires_grad());
}

// Arguments that PyTorch leaves out, and classes by its names.
static void guessed()
{
    Tensor x = tern::arange(0, 6, 1).reshape({2, 3});
    CHECK(x.flatten().size(0) == 6 && x.flatten(1).dim() == 2 && x.diagonal().sum().item() == 4 &&
          x.diagonal(1).numel() == 2);
    CHECK(std::fabs(x.std().item() - 1.870828693) < 1e-6 && x.var().item() == 3.5 &&
          x.var({1}).numel() == 2 && x.var(1).numel() == 2 && x.std(0).numel() == 3);
    CHECK(std::fabs(x.std({}, 0).item() - 1.707825128) < 1e-6);
    CHECK(tern::tril(x).sum().item() == 7 && x.triu(1).sum().item() == 8);
    auto parts =
        tern::data::random_split(tern::data::TensorDataset(tern::arange(0, 10, 1)), {0.8, 0.2}, 1);
    CHECK(parts.size() == 2 && parts[0].size() == 8 && parts[1].size() == 2);
    CHECK(thrown([&] {
              tern::data::random_split(parts[0], {5, 1});
          }).status() == TERN_ERR_ARGUMENT);
    nn::Linear model(3, 1);
    tern::optim::SGD optimizer(model.parameters(), 0.1);
    tern::amp::GradScaler scaler(4);
    Tensor loss = model(x).sum();
    CHECK(scaler.scale(loss).item() == 4 * loss.item() && scaler.get_scale() == 4);
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    scaler.step(optimizer);
    scaler.update();
    CHECK(thrown([&] { tern::amp::GradScaler(4, 0.5); }).status() == TERN_ERR_ARGUMENT);
    tern_module *dropout = tern_nn_dropout(0.25); // C's names take a number, and NULL as before
    CHECK(dropout);
    tern_nn_free(dropout);
    dropout = tern_nn_dropout(nullptr);
    CHECK(dropout);
    CHECK(tern_nn_is_training(tern_nn_train(tern_nn_eval(dropout)))); // true where it is left out
    tern_nn_free(dropout);
    TERN_SCOPE {
        CHECK(tern_item(tern_std(x.get())) == x.std().item());
    }
}

static void errors()
{
    tern::Error shapes = thrown([] { tern::matmul(tern::ones({2, 3}), tern::ones({2, 3})); });
    CHECK(shapes.status() == TERN_ERR_SHAPE && std::strstr(shapes.what(), "tern_matmul"));
    CHECK(thrown([] { tern::ones({2}).item(); }).status() == TERN_ERR_SHAPE);
    CHECK(std::isnan(tern::full({1}, NAN).item())); // a NaN is no error
    CHECK(thrown([] { tern::ones({2}).to_vector<double>(); }).status() == TERN_ERR_DTYPE);
    CHECK(thrown([] { Tensor({1.f, 2.f}, {3}); }).status() == TERN_ERR_SHAPE);
    CHECK(thrown([] { tern::set_default_device("nowhere:0"); }).status() == TERN_ERR_DEVICE);
    nn::Sequential net{nn::Linear(2, 3), nn::Linear(4, 1)};
    CHECK(thrown([&] { net(tern::ones({1, 2})); }).module() == "1");
}

/* Questions that fail throw too, and leave no error behind for the next step of an optimizer to refuse. */
static void questions()
{
    Tensor x = tern::ones({2, 3}), none;
    CHECK(thrown([&] { x.size(2); }).status() == TERN_ERR_ARGUMENT && x.size(-1) == 3);
    CHECK(thrown([&] { none.size(0); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.dim(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.numel(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.shape(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.dtype(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.device(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.is_contiguous(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.requires_grad(); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { none.to_vector<float>(); }).status() == TERN_ERR_ARGUMENT);
}

/* As in Python: lists, places, several results, numbers in place. */
static void words_of_pytorch()
{
    Tensor x = tern::arange(0, 6, 1, TERN_F32).reshape({2, 3});
    CHECK(x[1].to_vector<float>()[0] == 3 && x[-1][2].item() == 5 && x[x > 3].numel() == 2);
    CHECK(x[Tensor(std::vector<std::int64_t>{1, 1, 0})].size(0) == 3);
    CHECK(tern::cat({x, x}, 1).size(1) == 6 && tern::cat({x, x}).size(0) == 4);
    CHECK(tern::stack({x, x, x}, -1).size(2) == 3 && tern::stack({x, x}).dim() == 3);
    CHECK(tern::einsum("ij,kj->ik", {x, x}).shape()[1] == 2);
    CHECK(x.index_list({Tensor(), Tensor(std::vector<std::int64_t>{2})}).size(1) == 1);
    CHECK(thrown([&] { tern::cat({x, Tensor()}); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { tern::cat({}); }).status() == TERN_ERR_ARGUMENT);
    auto [values, indices] = x.max(1);
    CHECK(values.sum().item() == 7 && indices.sum().item() == 4 &&
          x.min(0, true).values.dim() == 2);
    CHECK(x.sort(1, true).values[0][0].item() == 2 && x.topk(2).indices[0][0].item() == 2);
    CHECK(x.chunk(3, 1).size() == 3 && x.split(2, 1)[1].size(1) == 1 && x.unbind().size() == 2);
    CHECK(thrown([&] { x.max(2); }).status() == TERN_ERR_ARGUMENT);
    CHECK(thrown([&] { x.split(0); }).status() != TERN_OK);
    x += 1, x *= 2, x -= 2, x /= 2, x /= tern::ones({3});
    CHECK(x.sum().item() == 15 && ((x % 2) == 1).sum().item() == 3);
    CHECK(((x > 1) & (x < 4)).sum().item() == 2 && ((x < 1) | (x > 4)).sum().item() == 2);
    CHECK((~(x > 1)).sum().item() == 2 && ((x > 1) ^ (x > 1)).any().item() == 0);
    nn::Linear net(3, 1);
    tern::optim::Adam adam(net.parameters(), 0.1,
                           tern::optim::Adam::Options().beta1(0.5).beta2(0.9));
    CHECK(tern_optim_get_option(adam.get(), 0, "beta1") == 0.5 && adam.lr() == 0.1);
    tern::optim::StepLR by_steps(adam, 2, 0.5);
    for (int i = 0; i < 4; i++) {
        adam.zero_grad();
        net(x).sum().backward();
        adam.step();
        by_steps.step();
    }
    CHECK(std::fabs(adam.lr() - 0.025) < 1e-12 && std::fabs(by_steps.last_lr() - 0.025) < 1e-12);
    CHECK(thrown([&] { tern::optim::StepLR(adam, 0); }).status() == TERN_ERR_ARGUMENT);
}

static int alive;
struct Doubled : nn::Module {
    nn::Linear inner = add("inner", nn::Linear(3, 3));
    Tensor scale = add_parameter("scale", tern::full({1}, 2.0));
    int *count;
    explicit Doubled(int *calls) : Module("Doubled"), count(calls)
    {
        alive++;
    }
    Doubled(const Doubled &other)
        : Module(other), inner(other.inner), scale(other.scale), count(other.count)
    {
        alive++;
    }
    ~Doubled() override
    {
        alive--;
    }
    Tensor forward(const Tensor &x) override
    {
        ++*count;
        if (x.size(-1) != 3)
            throw std::runtime_error("three are expected");
        return inner(x) * scale;
    }
};

struct Outer : nn::Module {
    nn::Sequential body = add("body", nn::Sequential(nn::Linear(2, 3), nn::Linear(4, 1)));
    Outer() : Module("Outer")
    {
    }
    Tensor forward(const Tensor &x) override
    {
        return body(x);
    }
};

// An error passes through forwards of C++ and keeps where it was.
static void errors_within()
{
    Outer outer;
    tern::Error alone = thrown([&] { outer(tern::ones({1, 2})); });
    CHECK(alone.module() == "body.1" && alone.operation() == "linear");
    CHECK(alone.status() == TERN_ERR_SHAPE);
    nn::Sequential net{nn::Tanh(), outer};
    CHECK(thrown([&] { net(tern::ones({1, 2})); }).module() == "1.body.1");
    CHECK(thrown([] { tern::ones({2}).item(); }).module() == ""); // another error
}

static void modules()
{
    int calls = 0;
    {
        Doubled one(&calls), same = one;
        Tensor x = tern::randn({4, 3});
        CHECK(same.get() == one.get() && (one(x) == one.inner(x) * 2).all().item() == 1);
        nn::Sequential net{Doubled(&calls), nn::Tanh(),
                           Doubled(&calls)}; // the objects live on in it
        CHECK(net.parameters().list().size() == 6 && net(x).size(1) == 3);
        CHECK(calls == 3);
        tern::Error error = thrown([&] { one(tern::randn({4, 2})); });
        CHECK(std::strstr(error.what(), "three are expected"));
        CHECK(thrown([&] { net(tern::randn({4, 2})); }).module() == "0");
        tern::optim::SGD sgd(net.parameters(), 0.5, tern::optim::SGD::Options().momentum(0));
        Tensor before = net.parameters().list()[0].clone();
        net(x).sum().backward();
        sgd.step();
        CHECK((before == net.parameters().list()[0]).all().item() == 0);
        sgd.zero_grad();
    }
    CHECK(alive == 0);
    Tensor x = tern::ones({1000});
    nn::Dropout none(0.0);
    CHECK(none(x).sum().item() == 1000);
}

static void loops()
{
    tern::data::TensorDataset data(tern::arange(0, 10, 1), tern::arange(0, 10, 1, TERN_I64));
    tern::data::Loader loader(data, tern::data::Loader::Options().batch_size(4));
    CHECK(loader.size() == 3 && data.size() == 10);
    int turns = 0;
    double sum = 0;
    Tensor kept;
    for (auto [x, y] : loader) {
        sum += x.sum().item() + y.sum().item();
        kept = x;
        turns++;
    }
    CHECK(turns == 3 && sum == 90 && kept.size(0) == 2); // a handle outlives its turn
    for (auto [x, y] : loader)
        if (x.size(0) == 4)
            break;
    turns = 0;
    for (auto [x, y] : loader) // from the beginning
        turns++;
    CHECK(turns == 3);
    CHECK(thrown([&] {
              for (auto [x] : loader.batches<1>())
                  (void)x;
          }).status() == TERN_ERR_ARGUMENT);
}

// A network as who knows libtorch writes it at the first try: a Module without a name, DataLoader.
struct Guessed : nn::Module {
    nn::Conv2d conv{1, 4, 3};
    nn::Linear fc{4, 2};
    Guessed()
    {
        add("conv", conv);
        add("fc", fc);
    }
    Tensor forward(const Tensor &x) override
    {
        return fc(tern::adaptive_avg_pool2d(conv(x).relu(), {1}).flatten(1));
    }
};

// Its forward is not an override; that of the library must not call itself.
struct Forwardless : nn::Module {
    Tensor wrong(Tensor x)
    {
        return x;
    }
};

static void guesses()
{
    tern::manual_seed(0);
    Tensor labels = tern::randint(0, 2, {64}, TERN_I64);
    Tensor images = tern::randn({64, 1, 8, 8}) + labels.view({64, 1, 1, 1}) * 2;
    tern::data::DataLoader loader(tern::data::TensorDataset(images, labels),
                                  tern::data::DataLoaderOptions().batch_size(16).shuffle(true));
    Guessed model;
    tern::optim::Adam optimizer(model.parameters(), 0.05);
    double right = 0;
    for (int epoch = 0; epoch < 10; epoch++)
        for (auto &&[x, y] : loader) {
            optimizer.zero_grad();
            tern::cross_entropy(model(x), y).backward();
            optimizer.step();
        }
    for (auto batch : loader)
        right += (model(batch[0]).argmax(1) == batch[1]).sum().item();
    CHECK(right >= 60);
    Forwardless none;
    tern::Error error = thrown([&] { none(tern::ones({1})); });
    CHECK(std::strstr(error.what(), "Module has no Tensor forward(const Tensor &) override"));
}

int main()
{
    tern::set_default_device("cpu");
    tern::manual_seed(0);
    std::int64_t before = tern_live_tensors();
    for (int i = 0; i < 2; i++) { // the second time nothing is left of the first
        if (i == 1)
            before = tern_live_tensors();
        tensors();
        guessed();
        errors();
        questions();
        words_of_pytorch();
        modules();
        guesses();
        errors_within();
        loops();
    }
    CHECK(tern_live_tensors() == before);
    std::puts("ok");
    return 0;
}
