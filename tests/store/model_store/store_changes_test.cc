// Copy, remove and blobs of a store that is there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "omnibus/store/model_store/model_store.h"

namespace omnibus {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// SHA-256 of "hello world" and of "hello" (coreutils' sha256sum).
constexpr char kWorld[] = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
constexpr char kHello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

class StoreChangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "omnibus_changes_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    store_.emplace(root_ + "/home");
  }
  void TearDown() override { fs::remove_all(root_); }

  void add(const std::string& name, const std::string& digest, const std::string& content) {
    ASSERT_TRUE(store_->add_blob(digest, content).ok());
    const size_t colon = name.find(':');
    const std::string folder = store_->home() + "/manifests/" + name.substr(0, colon);
    fs::create_directories(folder);
    std::ofstream(folder + "/" + name.substr(colon + 1) + ".json")
        << fmt::format(R"({{"name":"{}","aliases":["nick-{}"],"file":"f","digest":"sha256:{}","bytes":{},)"
                       R"("license":"","source":"","checked_bytes":0,"checked_modified_ns":0}})",
                       name, name.substr(0, colon), digest, content.size());
  }

  std::vector<std::string> names() {
    std::vector<std::string> out;
    const auto models = store_->list();
    EXPECT_TRUE(models.ok()) << models.status();
    if (!models.ok()) return out;
    for (const StoredModel& model : *models) out.push_back(model.name);
    return out;
  }

  std::string read(const std::string& relative) {
    std::ifstream in(store_->home() + "/" + relative, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::string root_;
  std::optional<ModelStore> store_;
};

TEST_F(StoreChangesTest, BlobsAreWhatTheirDigestSays) {
  EXPECT_FALSE(*store_->has_blob(kWorld));
  ASSERT_TRUE(store_->add_blob(kWorld, "hello world").ok());
  EXPECT_TRUE(*store_->has_blob(kWorld));
  EXPECT_EQ(read(std::string("blobs/sha256-") + kWorld), "hello world");
  const Status wrong = store_->add_blob(kHello, "hello worlds");
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status_message(wrong), HasSubstr("digest mismatch"));
  EXPECT_FALSE(*store_->has_blob(kHello));
  EXPECT_TRUE(fs::is_empty(store_->home() + "/tmp"));
}

TEST_F(StoreChangesTest, OnlyDigestsNameBlobs) {
  for (const std::string bad :
       {std::string(), std::string(63, '0'), std::string(65, '0'), std::string(64, 'A'),
        std::string("../") + std::string(61, '0'), std::string(64, '/')}) {
    EXPECT_EQ(store_->has_blob(bad).status().code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(store_->add_blob(bad, "x").code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(fs::exists(store_->home()));
}

TEST_F(StoreChangesTest, CopyIsAFurtherNameOfTheFile) {
  add("a:1b", kWorld, "hello world");
  ASSERT_TRUE(store_->copy("a:1b", "b:latest").ok());
  EXPECT_THAT(names(), ElementsAre("a:1b", "b:latest"));
  for (const char* name : {"b", "b:latest", "B"}) {
    const auto resolved = store_->resolve(name);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    EXPECT_EQ(resolved->digest, kWorld);
  }
  EXPECT_EQ(store_->resolve("nick-a")->name, "a:1b") << "aliases stay with the first name";
  EXPECT_TRUE(store_->copy("a:1b", "a:1b").ok());
  EXPECT_EQ(store_->copy("nobody", "c").code(), StatusCode::kNotFound);
  for (const char* bad : {"", "..", "a/b", "a:b:c", "../x:y"}) {
    EXPECT_EQ(store_->copy("a:1b", bad).code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_THAT(names(), ElementsAre("a:1b", "b:latest"));
}

TEST_F(StoreChangesTest, AFileGoesWithItsLastName) {
  add("a:1b", kWorld, "hello world");
  add("c:x", kHello, "hello");
  ASSERT_TRUE(store_->copy("a:1b", "b:latest").ok());
  ASSERT_TRUE(store_->remove("a:1b").ok());
  EXPECT_TRUE(*store_->has_blob(kWorld));
  EXPECT_FALSE(fs::exists(store_->home() + "/manifests/a"));
  // Taking the name of another model is the end of that one, too.
  ASSERT_TRUE(store_->copy("c:x", "b:latest").ok());
  EXPECT_FALSE(*store_->has_blob(kWorld));
  EXPECT_EQ(store_->resolve("b")->digest, kHello);
  ASSERT_TRUE(store_->remove("c:x").ok());
  EXPECT_TRUE(*store_->has_blob(kHello));
  EXPECT_EQ(store_->remove("c:x").code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->remove("nick-c").code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->remove("../b").code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(names(), ElementsAre("b:latest"));
}

TEST_F(StoreChangesTest, LinksAreNotFollowedByWriters) {
  add("a:1b", kWorld, "hello world");
  const std::string outside = root_ + "/outside";
  fs::create_directory(outside);
  fs::create_directory_symlink(outside, store_->home() + "/manifests/b");
  EXPECT_FALSE(store_->copy("a:1b", "b:latest").ok());
  fs::remove_all(store_->home() + "/tmp");
  fs::create_directory_symlink(outside, store_->home() + "/tmp");
  EXPECT_FALSE(store_->add_blob(kHello, "hello").ok());
  EXPECT_TRUE(fs::is_empty(outside));
}

TEST_F(StoreChangesTest, ListSaysWhenAModelChanged) {
  add("a:1b", kWorld, "hello world");
  const auto models = store_->list();
  ASSERT_TRUE(models.ok());
  EXPECT_GT(models->front().modified_ns, int64_t{1'600'000'000} * 1'000'000'000);
}

TEST_F(StoreChangesTest, BlobsThatNoModelNamesAreLimited) {
  add("a:1b", kWorld, "hello world");  // named: it does not count
  const Status full = store_->add_blob(kHello, "hello", 4);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(error_detail(full).code, kStoreFull);
  EXPECT_FALSE(*store_->has_blob(kHello));
  EXPECT_TRUE(store_->add_blob(kHello, "hello", 5).ok());
  // SHA-256 of "x". The five bytes of before count now.
  constexpr char kX[] = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
  EXPECT_EQ(store_->add_blob(kX, "x", 5).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_->add_blob(kX, "x", 6).ok());
}

// A pull has the lock for as long as it downloads.
TEST_F(StoreChangesTest, ChangesDoNotWaitForSomebodyElses) {
  add("a:1b", kWorld, "hello world");
  const int lock = open((store_->home() + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  for (const Status& status :
       {store_->copy("a:1b", "b:1b"), store_->remove("a:1b"), store_->add_blob(kHello, "hello")}) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
    EXPECT_EQ(error_detail(status).code, kStoreBusy) << status;
  }
  EXPECT_THAT(names(), ElementsAre("a:1b"));
  close(lock);
  EXPECT_TRUE(store_->copy("a:1b", "b:1b").ok());
}

TEST(DigestOfFile, IsSha256) {
  const std::string path = ::testing::TempDir() + "omnibus_digest_of_file";
  std::ofstream(path) << "hello";
  EXPECT_EQ(*digest_of_file(path), kHello);
  EXPECT_TRUE(is_blob_digest(kHello));
  fs::remove(path);
  EXPECT_EQ(digest_of_file(path).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace omnibus
