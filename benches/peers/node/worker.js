// The worker of node-redlock, at its defaults. What it is told and what it answers stands in
// ../src/process.rs.
'use strict';

const readline = require('node:readline');
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

// The TTL that the other libraries have as their default; this one has none.
const TTL_MS = 10_000;

let redlock;

// CLOCK_MONOTONIC in microseconds, as every worker reads it.
const now = () => Number(process.hrtime.bigint() / 1000n);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function connect({ urls, warm_ms, tasks, key }) {
  const clients = urls.map((url) => new Redis(url).on('error', () => {}));
  redlock = new Redlock(clients);
  // It tells of each refusal here, and an event that nobody hears would end the process.
  redlock.on('error', () => {});
  await repeatAll({ key, tasks, ms: warm_ms, at: now() });
  const version = (name) => require(`${name}/package.json`).version;
  const parts = [`node-redlock ${require('./package.json').dependencies.redlock}`];
  parts.push(`ioredis ${version('ioredis')}`, `Node ${process.versions.node}`);
  return { ready: parts.join(', ') };
}

// Takes and gives back fresh keys, once at least.
async function repeat(prefix, end, seen) {
  for (let count = 0; count === 0 || now() < end; count += 1) {
    const begin = now();
    try {
      const lock = await redlock.acquire([`${prefix}:${count}`], TTL_MS);
      await lock.release();
    } catch {
      seen.failed += 1;
    }
    seen.micros.push(now() - begin);
  }
}

async function repeatAll({ key, tasks, ms, at }) {
  await sleep((at - now()) / 1000);
  const begin = now();
  const seen = { micros: [], failed: 0 };
  const all = [];
  for (let task = 0; task < tasks; task += 1) {
    all.push(repeat(`${key}:${task}`, at + ms * 1000, seen));
  }
  await Promise.all(all);
  const wall_us = now() - begin;
  const sorted = seen.micros.sort((a, b) => a - b);
  const quantile = (share) => sorted[Math.round((sorted.length - 1) * share)];
  const pairs = sorted.length;
  return { p50: quantile(0.5), p99: quantile(0.99), pairs, failed: seen.failed, wall_us };
}

// Takes the one key again and again; `waiting` has those who have asked and not got it.
async function compete(task, { key, section_us }, end, seen) {
  while (now() < end) {
    const asked = now();
    seen.waiting.set(task, asked);
    let lock;
    while (lock === undefined && now() < end) {
      try {
        lock = await redlock.acquire([key], TTL_MS);
      } catch {
        seen.failed += 1;
      }
    }
    // A promise cannot be taken back: one that comes after the end has no part in it.
    if (lock === undefined || now() >= end) return;
    const got = now();
    seen.waiting.delete(task);
    if (section_us > 0) await sleep(section_us / 1000);
    seen.holds.push([task, asked, got, now()]);
    try {
      await lock.release();
    } catch {
      seen.failed += 1;
    }
  }
}

async function competeAll(job) {
  const end = job.at + job.ms * 1000;
  const seen = { holds: [], waiting: new Map(), failed: 0 };
  await sleep((job.at - now()) / 1000);
  for (let task = 0; task < job.tasks; task += 1) compete(task, job, end, seen);
  // A little more, so that who holds it at the end can let go.
  await sleep((end - now()) / 1000 + 20);
  for (const [task, asked] of seen.waiting) seen.holds.push([task, asked, 0, 0]);
  return { holds: seen.holds, failed: seen.failed };
}

async function obey(order) {
  if (order.op === 'connect') return connect(order);
  return order.shared ? competeAll(order) : repeatAll(order);
}

const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => {
  obey(JSON.parse(line))
    .catch((error) => ({ error: String(error) }))
    .then((answer) => process.stdout.write(`${JSON.stringify(answer)}\n`));
});
lines.on('close', () => process.exit(0));
