// SPDX-License-Identifier: Apache-2.0
// A doubly linked list whose links live in the elements: moving an I/O between queues never
// allocates.
#pragma once

#include "common/base/check.h"

namespace vjbod {

// Derive an element from ListNode<Tag>; one Tag per list an element can be on at the same time.
template <typename Tag = void>
class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { VJBOD_CHECK(!linked(), "element destroyed while on a list"); }

  bool linked() const { return next_ != nullptr; }
  // Takes the element off whichever list it is on; nothing if on none.
  void unlink() {
    if (!linked()) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 private:
  template <typename, typename>
  friend class IntrusiveList;
  ListNode* next_ = nullptr;
  ListNode* previous_ = nullptr;
};

// Does not own its elements. Must be empty when destroyed.
template <typename T, typename Tag = void>
class IntrusiveList {
  using Node = ListNode<Tag>;

 public:
  IntrusiveList() { head_.next_ = head_.previous_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    VJBOD_CHECK(empty(), "list destroyed with elements on it");
    head_.next_ = head_.previous_ = nullptr;
  }

  bool empty() const { return head_.next_ == &head_; }
  void push_back(T& element) { insert_before(head_, element); }
  void push_front(T& element) { insert_before(*head_.next_, element); }
  T& front() { return static_cast<T&>(*head_.next_); }
  T& back() { return static_cast<T&>(*head_.previous_); }
  T& pop_front() {
    VJBOD_CHECK(!empty());
    T& element = front();
    static_cast<Node&>(element).unlink();
    return element;
  }
  // Moves all of `other` to the end of this list, in order.
  void append(IntrusiveList& other) {
    while (!other.empty()) push_back(other.pop_front());
  }
  // Calls f(element) for each; f may unlink the element it is given, but no other.
  template <typename F>
  void for_each(F&& f) {
    for (Node* n = head_.next_; n != &head_;) {
      Node* next = n->next_;
      f(static_cast<T&>(*n));
      n = next;
    }
  }

 private:
  void insert_before(Node& position, T& element) {
    Node& node = element;
    VJBOD_CHECK(!node.linked(), "element is already on a list");
    node.next_ = &position;
    node.previous_ = position.previous_;
    position.previous_->next_ = &node;
    position.previous_ = &node;
  }

  Node head_;
};

}  // namespace vjbod
