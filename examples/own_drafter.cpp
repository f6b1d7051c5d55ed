// A drafter of one's own: after each token it proposes what followed that token last time. The text
// is the model's, token for token, whatever a drafter proposes; only the number of passes changes.
// example_own_drafter MODEL PROMPT
#include <medusa/medusa.h>

#include <iostream>
#include <memory>
#include <unordered_map>
#include <vector>

namespace {

class LastTime : public medusa::Drafter {
 public:
  medusa::CandidateTree propose(const medusa::DraftContext& context,
                                const medusa::Random& /*random*/) override {
    for (; read_ + 1 < context.tokens.size(); ++read_)
      next_[context.tokens[read_]] = context.tokens[read_ + 1];
    std::vector<medusa::TokenId> path;
    for (auto at = next_.find(context.tokens.back()); at != next_.end() && path.size() < kDepth;
         at = next_.find(at->second))
      path.push_back(at->second);
    medusa::TreeBuilder tree(context);  // keeps to the limits of the step
    tree.add_path(path);
    return std::move(tree).take();
  }

 private:
  static constexpr size_t kDepth = 4;

  std::unordered_map<medusa::TokenId, medusa::TokenId> next_;
  size_t read_ = 0;  // tokens of the text that are in next_
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: example_own_drafter MODEL PROMPT\n";
    return 2;
  }
  try {
    medusa::GeneratorOptions options;
    options.own_drafter = [] { return std::make_unique<LastTime>(); };  // one for each text
    medusa::Generator generator(medusa::Model::load(argv[1]), options);
    const medusa::Answer answer = generator.generate(argv[2]);
    std::cout << answer.text << "\n";
    std::cerr << answer.tokens.size() << " tokens in " << answer.stats.steps << " passes\n";
  } catch (const medusa::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
