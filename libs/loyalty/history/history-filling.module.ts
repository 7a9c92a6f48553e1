import { Module } from '@nestjs/common';
import { HistoryTable } from './history-table.service.js';
import { HistorySubscription } from './history.subscription.js';

/** The part of the history that runs in the dispatcher. */
@Module({ providers: [HistoryTable, HistorySubscription], exports: [HistorySubscription] })
export class HistoryFillingModule {}
