import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { posterHandlers } from './poster.commands.js';
import { PostersController } from './posters.controller.js';
import { PostersService } from './posters.service.js';

@Module({
  imports: [CqrsModule],
  controllers: [PostersController],
  providers: [PostersService, ...posterHandlers],
})
export class PostersModule {}
