/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 256 };

typedef struct {
  unsigned char bytes[ROOM];
  int size;
} Packed;

typedef struct {
  char text[ROOM];
  int size;
} Plain;

static int longest_match(const char* text, int at, int size, int* distance) {
  int best = 0;

  for (int from = 0; from < at; from++) {
    int length = 0;

    while (at + length < size && length < 60 && text[from + length] == text[at + length])
      length++;
    if (length >= best && length > 0) { //@better
      best = length;
      *distance = at - from; //@distance
    }
  }
  return best;
}

static void emit(Packed* p, unsigned char byte) {
  p->bytes[p->size++] = byte;
}

/* A literal is one byte below 128; a copy is 128 + length and the distance. */
static void pack(const char* text, Packed* p) {
  int size = (int)strlen(text);

  for (int at = 0; at < size;) {
    int distance = 0;
    int length = longest_match(text, at, size, &distance);

    if (length < 3) {
      emit(p, (unsigned char)text[at++]);
      continue;
    }
    emit(p, (unsigned char)(128 + length)); //@length
    emit(p, (unsigned char)distance); //@emit
    at += length;
  }
}

static void append_copy(Plain* out, int distance, int length) {
  const char* from = out->text + out->size - distance; //@from

#ifdef FIXED
  for (int i = 0; i < length; i++)
    out->text[out->size + i] = from[i];
#else
  memmove(out->text + out->size, from, (size_t)length); //@move
#endif
  out->size += length;
}

static void unpack(const Packed* p, Plain* out) {
  for (int at = 0; at < p->size; at++) {
    if (p->bytes[at] < 128) {
      out->text[out->size++] = (char)p->bytes[at];
    } else {
      append_copy(out, p->bytes[at + 1], p->bytes[at] - 128); //@copy
      at++;
    }
  }
}

int main(int argc, char** argv) {
  static const char* const samples[] = {
      "to be or not to be",
      "she sells sea shells by the sea",
      "nananana",
      "one more and one more again",
      "tick tock tick tock",
  };
  static Packed packed;
  static Plain plain;
  struct timespec now;
  const char* text;

  clock_gettime(CLOCK_REALTIME, &now);
  text = argc > 1 ? argv[1] : samples[now.tv_nsec / 1000 % 5]; //@input
  pack(text, &packed);
  unpack(&packed, &plain);
  printf("before: %s\n", text);
  printf("after:  %s\n", plain.text); //@print
  return 0;
}
