import { test } from 'node:test';
import { connectAndClose, wrongMessages } from './fixtures/garbage.js';

test('1000 connections that close at once (F46)', () => connectAndClose(1000));

test('thousands of ZeroMQ messages that are none of ours (F45)', () => wrongMessages(2000));
