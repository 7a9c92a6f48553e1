import { Module } from '@nestjs/common';
import { posterHandlers } from './poster.commands.js';
import { PostersController } from './posters.controller.js';
import { PostersService } from './posters.service.js';

@Module({
  controllers: [PostersController],
  providers: [PostersService, ...posterHandlers],
  exports: [PostersService],
})
export class PostersModule {}
