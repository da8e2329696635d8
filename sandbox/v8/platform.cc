// The V8 platform: V8's default one with one background thread, wrapped so that the event loop can ask whether
// background work (an asynchronous WebAssembly compilation, for instance) may still post something.
#include <mutex>
#include <set>

#include "isolate.h"

namespace executord {
namespace {

std::atomic<int> background_tasks{0};
std::atomic<uint64_t> background_begun{0};  // tasks and jobs ever made
std::mutex jobs_mutex;
std::set<v8::JobTask*> jobs;

class CountedTask : public v8::Task {
 public:
  explicit CountedTask(std::unique_ptr<v8::Task> inner) : inner_(std::move(inner)) {
    background_tasks++;
    background_begun++;
  }
  ~CountedTask() override { background_tasks--; }
  void Run() override { inner_->Run(); }

 private:
  std::unique_ptr<v8::Task> inner_;
};

class CountedJob : public v8::JobTask {
 public:
  explicit CountedJob(std::unique_ptr<v8::JobTask> inner) : inner_(std::move(inner)) {
    std::lock_guard<std::mutex> lock(jobs_mutex);
    jobs.insert(inner_.get());
    background_begun++;
  }
  ~CountedJob() override {
    std::lock_guard<std::mutex> lock(jobs_mutex);
    jobs.erase(inner_.get());
  }
  void Run(v8::JobDelegate* delegate) override { inner_->Run(delegate); }
  size_t GetMaxConcurrency(size_t workers) const override { return inner_->GetMaxConcurrency(workers); }

 private:
  std::unique_ptr<v8::JobTask> inner_;
};

class CountingPlatform : public v8::Platform {
 public:
  CountingPlatform() : inner_(v8::platform::NewDefaultPlatform(1)) {}
  v8::Platform* inner() { return inner_.get(); }

  v8::PageAllocator* GetPageAllocator() override { return inner_->GetPageAllocator(); }
  v8::ThreadIsolatedAllocator* GetThreadIsolatedAllocator() override { return inner_->GetThreadIsolatedAllocator(); }
  void OnCriticalMemoryPressure() override { inner_->OnCriticalMemoryPressure(); }
  int NumberOfWorkerThreads() override { return inner_->NumberOfWorkerThreads(); }
  std::shared_ptr<v8::TaskRunner> GetForegroundTaskRunner(v8::Isolate* iso, v8::TaskPriority priority) override {
    return inner_->GetForegroundTaskRunner(iso, priority);
  }
  bool IdleTasksEnabled(v8::Isolate* iso) override { return inner_->IdleTasksEnabled(iso); }
  double MonotonicallyIncreasingTime() override { return inner_->MonotonicallyIncreasingTime(); }
  double CurrentClockTimeMillis() override { return inner_->CurrentClockTimeMillis(); }
  v8::TracingController* GetTracingController() override { return inner_->GetTracingController(); }

 protected:
  std::unique_ptr<v8::JobHandle> CreateJobImpl(v8::TaskPriority priority, std::unique_ptr<v8::JobTask> job, const v8::SourceLocation& where) override {
    return inner_->CreateJob(priority, std::make_unique<CountedJob>(std::move(job)), where);
  }
  void PostTaskOnWorkerThreadImpl(v8::TaskPriority priority, std::unique_ptr<v8::Task> task, const v8::SourceLocation& where) override {
    auto counted = std::make_unique<CountedTask>(std::move(task));
    switch (priority) {
      case v8::TaskPriority::kBestEffort: return inner_->CallLowPriorityTaskOnWorkerThread(std::move(counted), where);
      case v8::TaskPriority::kUserVisible: return inner_->CallOnWorkerThread(std::move(counted), where);
      case v8::TaskPriority::kUserBlocking: return inner_->CallBlockingTaskOnWorkerThread(std::move(counted), where);
    }
  }
  void PostDelayedTaskOnWorkerThreadImpl(v8::TaskPriority, std::unique_ptr<v8::Task> task, double delay, const v8::SourceLocation& where) override {
    inner_->CallDelayedOnWorkerThread(std::move(task), delay, where);
  }

 private:
  std::unique_ptr<v8::Platform> inner_;
};

CountingPlatform* the_platform = nullptr;

}  // namespace

v8::Platform* ThePlatform() { return the_platform->inner(); }

void InitPlatform() {
  the_platform = new CountingPlatform();  // lives as long as the process: V8 has no clean way back
  v8::V8::InitializePlatform(the_platform);
}

uint64_t BackgroundBegun() { return background_begun; }

bool BackgroundBusy() {
  if (background_tasks > 0) return true;
  std::lock_guard<std::mutex> lock(jobs_mutex);
  for (v8::JobTask* job : jobs) {
    if (job->GetMaxConcurrency(0) > 0) return true;
  }
  return false;
}

}  // namespace executord
